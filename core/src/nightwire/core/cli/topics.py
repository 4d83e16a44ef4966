"""The verb `nightwire topics apply`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nightwire.core.cli.options import bootstrap_option, json_option, reached

if TYPE_CHECKING:
    from nightwire.core.kafka.topic_plan import Step


@click.command()
@click.argument(
    "file",
    required=False,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="NIGHTWIRE_TOPICS",
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
@click.option(
    "--break-order",
    is_flag=True,
    help="Add partitions to topics that have records, although objects then change their partition.",
)
@bootstrap_option
@json_option
def apply(file: Path | None, dry_run: bool, break_order: bool, bootstrap: str | None, as_json: bool) -> None:
    """Keep the topics as the surveys' descriptions say, and as FILE says otherwise.

    FILE is TOML (else what NIGHTWIRE_TOPICS names, else none): a table for each survey or topic
    that differs, with any of partitions, days, partition_bytes, compression (uncompressed, lz4,
    zstd, snappy, gzip), replication, and format: "wire", or "container" for Avro containers with
    hop-client's headers.  The format is read by those who write: give them the same file in
    NIGHTWIRE_TOPICS.

    What is as it should be is left alone, so it can be run again.  Exits 1 when something was
    refused.

    \b
      [survey.lsst]
      partitions = 8
      days = 3
      compression = "lz4"
      replication = 3
    \b
      [topic."filter.me.bright"]
      days = 90

    \b
    Examples:
      nightwire topics apply topics.toml --dry-run
      nightwire topics apply topics.toml
    """
    from nightwire.core.kafka import topics as topics_apply
    from nightwire.core.kafka.topic_plan import Action
    from nightwire.schemas.topics import NameError_, read_changes

    try:
        wanted = topics_apply.wanted_topics(read_changes(file) if file else {})
    except NameError_ as error:
        raise click.UsageError(str(error)) from error
    kafka = reached(bootstrap).kafka
    steps = topics_apply.compare(kafka, wanted, break_order=break_order)
    if not dry_run:
        topics_apply.apply(kafka, wanted, steps)
    show(steps, dry_run=dry_run, as_json=as_json)
    raise SystemExit(any(step.action is Action.REFUSE for step in steps))


def show(steps: "Sequence[Step]", *, dry_run: bool, as_json: bool) -> None:
    """Print the differences, and what was done about each."""
    if as_json:
        found = [{**vars(step), "action": step.action.value} for step in steps]
        click.echo(json.dumps({"applied": not dry_run, "steps": found}, indent=2))
        return
    if not steps:
        click.echo("all topics are as they should be")
        return
    from nightwire.core.cli.tables import Column, Listing, show_tables

    columns = ("topic", "setting", "now", "wanted", "action")
    rows = [
        (step.topic, step.setting, step.now or None, step.wanted or "(default)", step.action.value)
        for step in steps
    ]
    show_tables(Listing([Column(title) for title in columns], rows))
    for step in steps:
        if step.why:
            click.secho(f"{step.topic}: {step.setting} {step.now} → {step.wanted}: {step.why}", err=True)
    if dry_run:
        click.echo("nothing was changed (--dry-run)")
