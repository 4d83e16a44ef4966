"""The verb `nightwire filter`."""

import click

from nightwire.filters._look_commands import list_, log, overflow, show, top
from nightwire.filters._owner_commands import disable, enable, remove, rollback, submit
from nightwire.filters._run_command import run
from nightwire.filters._write_commands import new, test


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


for verb in (new, test, submit, enable, disable, rollback, remove, list_, show, log, top, overflow, run):
    filter_.add_command(verb)
