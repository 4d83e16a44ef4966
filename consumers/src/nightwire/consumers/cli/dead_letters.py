"""The verbs `nightwire dead-letters list`, `show` and `replay`."""

import json

import click

from nightwire.core.cli import bootstrap_option, json_option, registry_option


@click.group("dead-letters")
def dead_letters() -> None:
    """Dead letters: list what could not be read, show one, send it back.

    \b
    Example:
      nightwire dead-letters list
    """


@dead_letters.command("list")
@click.option(
    "--last", type=click.IntRange(1), default=20, show_default=True, metavar="N", help="The newest N."
)
@bootstrap_option
@json_option
def list_(last: int, bootstrap: str | None, as_json: bool) -> None:
    """List the newest: where from, why, when, and whether they were replayed.

    \b
    Example:
      nightwire dead-letters list --last 100 --json
    """
    from rich.console import Console

    from nightwire.consumers.admin import dead_letter_store as _letter_box
    from nightwire.consumers.admin.dead_letters import as_record, table
    from nightwire.core.runtime import find_endpoints

    kafka = find_endpoints(bootstrap).kafka
    letters, done = _letter_box.newest(kafka, last), _letter_box.replayed_before(kafka)
    if as_json:
        click.echo(json.dumps([as_record(one, one.number in done) for one in letters], indent=2))
    else:
        Console().print(table(letters, done))


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
    from nightwire.consumers.admin import dead_letter_store as _letter_box
    from nightwire.consumers.admin.dead_letters import lines, verdict
    from nightwire.core.runtime import find_endpoints
    from nightwire.schemas import AlertDecoder, SchemaRegistry

    endpoints = find_endpoints(bootstrap, registry)
    try:
        found = _letter_box.one(endpoints.kafka, number)
    except _letter_box.LetterError as error:
        raise click.ClickException(str(error)) from error
    with SchemaRegistry(endpoints.schema_registry) as client:
        click.echo("\n".join(lines(found, verdict(found, AlertDecoder(client)))))


@dead_letters.command()
@click.argument("numbers", nargs=-1, required=True, type=click.IntRange(0), metavar="N...")
@click.option("--again", is_flag=True, help="Send a letter that was replayed before once more.")
@bootstrap_option
def replay(numbers: tuple[int, ...], again: bool, bootstrap: str | None) -> None:
    """Send letters back to the topics they came from, with their key and headers.

    A copy tells in its headers where the record first lay, so that readers with --dedup offset drop it
    if they had it; `nightwire accounts` counts it.

    \b
    Example:
      nightwire dead-letters replay 17 18
    """
    from nightwire.consumers.admin import dead_letter_store as _letter_box
    from nightwire.consumers.source.source import TopicError
    from nightwire.core.runtime import find_endpoints

    kafka = find_endpoints(bootstrap).kafka
    try:
        letters = [_letter_box.one(kafka, number) for number in dict.fromkeys(numbers)]
        for one in _letter_box.replay(kafka, letters, again=again):
            topic, partition, offset = one.to
            click.echo(f"{one.number} -> {topic}[{partition}]@{offset}")
    except (_letter_box.LetterError, TopicError) as error:
        raise click.ClickException(str(error)) from error
