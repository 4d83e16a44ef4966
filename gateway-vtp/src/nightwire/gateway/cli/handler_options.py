"""The options of ``nightwire gateway serve`` that say what to do with each event."""

import click

from nightwire.core.cli import with_options
from nightwire.gateway.voevent.roles import ACTED_ON, ROLES

OPTIONS = (
    click.option(
        "--cmd",
        "commands",
        metavar="COMMAND",
        multiple=True,
        help="Run COMMAND for each event, the packet on its standard input; repeatable.",
    ),
    click.option("--print-event", is_flag=True, help="Print each event to standard output."),
    click.option("--save-event", is_flag=True, help="Write each event to a file named after its IVORN."),
    click.option(
        "--save-event-directory",
        metavar="DIR",
        help="Where --save-event writes to.  [default: the working directory]",
    ),
    click.option(
        "--handler",
        "plugins",
        metavar="NAME",
        multiple=True,
        help="Give each event to the Python plug-in NAME (entry points nightwire.handlers); repeatable.",
    ),
    click.option(
        "--handler-option",
        "plugin_options",
        metavar="NAME.KEY=VALUE",
        multiple=True,
        help="Option of a plug-in; repeatable.",
    ),
    click.option(
        "--handle-role",
        "roles",
        metavar="ROLE",
        multiple=True,
        type=click.Choice(ROLES),
        default=ACTED_ON,
        show_default=True,
        help="Handlers act on events of this role; repeatable.",
    ),
    click.option(
        "--handler-jobs",
        "jobs",
        type=click.IntRange(1, 256),
        default=4,
        show_default=True,
        help="Most runs of one command at once; further events wait in Kafka.",
    ),
    click.option(
        "--handler-timeout",
        "timeout",
        type=click.FloatRange(0.1),
        default=60,
        show_default=True,
        help="A handler that takes longer over an event is killed [s].",
    ),
    click.option(
        "--catch-up/--no-catch-up",
        default=True,
        show_default=True,
        help="After a restart, handlers act on what came meanwhile.",
    ),
)
HANDLER_OPTIONS = (
    "commands",
    "print_event",
    "save_event",
    "save_event_directory",
    "plugins",
    "plugin_options",
    "roles",
    "jobs",
    "timeout",
    "catch_up",
)
"""The names under which a command gets them."""


handler_options = with_options(OPTIONS)
"""Gives a command the options of handlers."""
