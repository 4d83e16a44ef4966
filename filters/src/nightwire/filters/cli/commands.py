"""The verb `nightwire filter`."""

import click

from nightwire.filters.cli.author import new, test
from nightwire.filters.cli.comments import comment, comments
from nightwire.filters.cli.inspect import list_, log, overflow, show, top
from nightwire.filters.cli.owner import backfill, disable, enable, remove, rollback, submit
from nightwire.filters.cli.run import run


@click.group("filter")
def filter_() -> None:
    """Filters: your Python function, judged over every alert, its alerts in a topic of your own.

    \b
    Example:
      nightwire filter new bright
      nightwire filter test bright.ipynb --survey sim
      nightwire filter submit bright.ipynb --name bright
      nightwire subscribe filter.me.bright
    """


for verb in (
    *(new, test, submit, backfill, enable, disable, rollback, remove),
    *(list_, show, log, top, overflow, comment, comments, run),
):
    filter_.add_command(verb)
