"""The verbs `nightwire dead-letters list`, `show` and `replay`."""

import json
from typing import TYPE_CHECKING

import click

from nightwire.consumers.cli.options import last_option
from nightwire.core.cli import bootstrap_option, json_option, reached, registry_option, wide_option

if TYPE_CHECKING:
    from nightwire.consumers.admin import SentBack


@click.group("dead-letters")
def dead_letters() -> None:
    """Dead letters: list what could not be read, show one, send it back.

    \b
    Example:
      nightwire dead-letters list
    """


@dead_letters.command("list")
@last_option("The newest N.", default=20)
@wide_option
@bootstrap_option
@json_option
def list_(last: int, wide: bool, bootstrap: str | None, as_json: bool) -> None:
    """List the newest: where from, why, when, and whether they were replayed.

    \b
    Example:
      nightwire dead-letters list --last 100 --json
    """
    from nightwire.consumers.admin.dead_letter_store import DeadLetterStore, oldest
    from nightwire.consumers.admin.dead_letters import letter_record, letters_table
    from nightwire.core.cli import show_tables

    store = DeadLetterStore(reached(bootstrap).kafka)
    letters = store.newest(last)
    replayed = store.replayed(oldest(letters))
    if as_json:
        records = [letter_record(letter, letter.number in replayed) for letter in letters]
        click.echo(json.dumps(records, indent=2))
    else:
        show_tables(letters_table(letters, replayed, wide=wide))


@dead_letters.command()
@click.argument("number", type=click.IntRange(0), metavar="N")
@bootstrap_option
@registry_option
def show(number: int, bootstrap: str | None, registry: str | None) -> None:
    """Show one: where from, why, when, its headers and bytes, and whether it can be decoded now.

    \b
    Example:
      nightwire dead-letters show 17
    """
    from nightwire.consumers.admin.dead_letter_store import DeadLetterStore
    from nightwire.consumers.admin.dead_letters import decodability, letter_lines
    from nightwire.schemas import AlertDecoder, SchemaRegistry

    endpoints = reached(bootstrap, registry)
    letter = DeadLetterStore(endpoints.kafka).get(number)
    with SchemaRegistry(endpoints.schema_registry) as client:
        click.echo("\n".join(letter_lines(letter, decodability(letter, AlertDecoder(client)))))


@dead_letters.command()
@click.argument("numbers", nargs=-1, required=True, type=click.IntRange(0), metavar="N...")
@click.option("--again", is_flag=True, help="Send a letter that was replayed before once more.")
@click.option(
    "--alike", is_flag=True, help="And 1,000 others of its reason, among the 10,000 before and after it."
)
@bootstrap_option
def replay(numbers: tuple[int, ...], again: bool, alike: bool, bootstrap: str | None) -> None:
    """Send letters back to the topics they came from, with their key and headers.

    A copy has the first place of the record in its headers, so that readers with --dedup offset
    drop it if they had it; `nightwire accounts` counts it.

    \b
    Example:
      nightwire dead-letters replay 17 18
      nightwire dead-letters replay 17 --alike
    """
    from nightwire.consumers.admin.dead_letter_store import DeadLetterStore

    if alike and (again or len(numbers) > 1):
        raise click.UsageError("--alike goes with one number, and without --again")
    store = DeadLetterStore(reached(bootstrap).kafka)
    if alike:
        _say(store.send_back(numbers[0], alike=True))
        return
    letters = [store.get(number) for number in dict.fromkeys(numbers)]
    for copy in store.replay(letters, again=again):
        click.echo(str(copy))


def _say(done: "SentBack") -> None:
    for copy in done.replayed:
        click.echo(str(copy))
    if done.refused:
        raise click.ClickException("\n".join(done.refused))
