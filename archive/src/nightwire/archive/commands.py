"""The verb `nightwire archive`."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from nightwire.core.cli import (
    Size,
    bootstrap_option,
    completion,
    duration_option,
    parse_duration,
    reached,
    service_of,
    service_options,
    with_options,
)

if TYPE_CHECKING:
    from nightwire.archive import Archive

NICENESS = 10
"""Niceness of `serve`: the live stream comes first where there are too few cores."""
archive_option = click.option(
    "--archive",
    "url",
    envvar="NIGHTWIRE_ARCHIVE",
    metavar="URL",
    help="A folder, or s3://BUCKET/PREFIX.  [default: NIGHTWIRE_ARCHIVE, else archive/ in the stack's state]",
)
survey_option = click.option(
    "--survey", shell_complete=completion.surveys, help="Whose alerts.  [default: the only one there is]"
)
QUERY_OPTIONS = (
    archive_option,
    survey_option,
    click.option(
        "--columns", metavar="NAME,…", help="Columns of the answer; * for all.  [default: canonical ones]"
    ),
    click.option(
        "--as",
        "form",
        type=click.Choice(["table", "json", "csv", "parquet", "arrow", "votable", "avro"]),
        default="table",
        show_default=True,
        help="Form of the answer; Avro has whole alerts, with their stamps.  A table in FILE is JSON.",
    ),
    click.option(
        "--out",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Where to.  [default: stdout]",
    ),
)


@click.group()
def archive() -> None:
    """Keep what passed, and ask for it: by id, object, place, and SQL.

    \b
    Examples:
      nightwire archive get 170253142325723141 --survey lsst
      nightwire archive cone 150.11 -2.2 1arcmin --survey lsst --as votable --out near.xml
      nightwire archive check
    """


@archive.command()
@archive_option
@with_options(service_options(8085))
@click.option(
    "--schedule",
    type=click.Choice(["constant", "rate", "state", "order"]),
    default="state",
    show_default=True,
    help="When records are taken: at once; so many bytes a second; between visits; a partition at a time.",
)
@click.option(
    "--rate",
    type=Size(),
    default="10MB",
    show_default=True,
    help="Most bytes a second, with --schedule rate.",
)
@duration_option("--every", "1m", "Write at the latest after so long.")
@click.option("--batch", type=Size(), default="64MB", show_default=True, help="Or after so many bytes.")
@click.option(
    "--keep", metavar="DURATION", help="How long columns are kept, such as 730d.  [default: for ever]"
)
@click.option("--keep-whole", metavar="DURATION", help="How long whole alerts are kept.  [default: for ever]")
@duration_option("--compact-every", "10m", "Time between two compactions of small files.")
def serve(
    url: str | None,
    every: float,
    batch: int,
    keep: str | None,
    keep_whole: str | None,
    compact_every: float,
    **more: Any,
) -> None:
    """Archive every survey's alerts, and answer questions over HTTP, until it is stopped.

    \b
    Examples:
      nightwire archive serve --archive /data/archive
      AWS_ENDPOINT_URL=http://store:9000 nightwire archive serve --archive s3://night/archive
    """
    os.nice(NICENESS)  # before what it imports, which takes a second

    from nightwire.archive.maintenance import Retention
    from nightwire.archive.serve import ServeSettings
    from nightwire.archive.serve import serve as run
    from nightwire.archive.writing import Batching

    run(
        ServeSettings(
            store=_store(url),
            batching=Batching(every, batch),
            retention=Retention(_duration(keep), _duration(keep_whole)),
            compact_every=compact_every,
            **service_of(more),
        )
    )


@archive.command()
@click.argument("alert_id", metavar="ID")
@with_options(QUERY_OPTIONS)
def get(alert_id: str, **options: Any) -> None:
    """Show the alert with an ID; with --as avro whole, with its stamps.

    \b
    Example:
      nightwire archive get 170253142325723141 --survey lsst --as avro --out alert.avro
    """
    _answer(lambda found, survey, columns: found.get(alert_id, survey, columns), **options)


@archive.command("object")
@click.argument("object_id", metavar="ID")
@click.option("--light-curve", is_flag=True, help="The merged light curve instead: detections and histories.")
@with_options(QUERY_OPTIONS)
def object_(object_id: str, light_curve: bool, **options: Any) -> None:
    """Show all alerts of the object ID, or of a solar-system object, by time.

    \b
    Examples:
      nightwire archive object 170032890000123 --survey lsst
      nightwire archive object 170032890000123 --light-curve --as votable --out curve.xml
    """
    if light_curve:
        if options["form"] == "avro":
            raise click.UsageError("a light curve is no alert: --as avro goes without --light-curve")
        _answer(lambda found, survey, _: found.light_curve(object_id, survey), **options)
    else:
        _answer(lambda found, survey, columns: found.object(object_id, survey, columns), **options)


@archive.command(context_settings={"ignore_unknown_options": True})  # -47.2 is a declination
@click.argument("ra", type=float)
@click.argument("dec", type=float)
@click.argument("radius")
@with_options(QUERY_OPTIONS)
def cone(ra: float, dec: float, radius: str, **options: Any) -> None:
    """Show the alerts within RADIUS of RA and DEC, the nearest first.

    RA and DEC are degrees, ICRS; RADIUS is degrees, or has a unit: 30arcsec, 2arcmin.

    \b
    Example:
      nightwire archive cone 150.11 -2.2 1arcmin --survey lsst
    """
    from astropy.coordinates import Angle

    try:
        size = float(Angle(radius, "deg").deg)
    except ValueError as error:
        raise click.UsageError(f"RADIUS {radius!r}: {error}") from error
    _answer(lambda found, survey, columns: found.cone(ra, dec, size, survey, columns), **options)


@archive.command()
@click.argument("sql")
@with_options(QUERY_OPTIONS)
def query(sql: str, columns: str | None, **options: Any) -> None:
    """Answer SQL (DuckDB's) over lsst, lsst_packets and so on; nothing can be written.

    \b
    Example:
      nightwire archive query "SELECT band, avg(diaSource.psfFlux) FROM lsst GROUP BY band"
    """
    _answer(lambda found, _survey, _columns: found.query(sql), columns=columns, **options)


@archive.command()
@archive_option
@click.option("--keep", metavar="DURATION", help="Delete columns that are older.")
@click.option("--keep-whole", metavar="DURATION", help="Delete whole alerts that are older.")
def compact(url: str | None, keep: str | None, keep_whole: str | None) -> None:
    """Join small files, and delete what is too old; a `nightwire archive serve` may be at work."""
    from nightwire.archive.maintenance import Maintenance, Retention

    maintenance = Maintenance(_store(url), Retention(_duration(keep), _duration(keep_whole)))
    fewer = maintenance.run(min_files=2)
    click.echo(f"{fewer} {'file' if fewer == 1 else 'files'} fewer")
    if maintenance.errors:
        raise click.ClickException("; ".join(maintenance.errors))


@archive.command()
@archive_option
@bootstrap_option
def check(url: str | None, bootstrap: str | None) -> None:
    """Prove that archive and topics are the same, record by record that Kafka still has.

    \b
    Example:
      nightwire archive check --archive /data/archive
    """
    from nightwire.archive import Archive
    from nightwire.archive.check import compare
    from nightwire.core.cli import Column, Listing, show_tables

    kafka = reached(bootstrap).kafka
    with Archive(_store(url).url) as found:
        rows = [(survey, one) for survey in found.surveys for one in compare(kafka, found, survey)]
    titles = ("survey", *(vars(rows[0][1]) if rows else ()))
    cells = [[survey, *vars(one).values()] for survey, one in rows]
    show_tables(Listing([Column(name, number=name != "survey") for name in titles], cells))
    if not all(one.same for _, one in rows):
        raise click.ClickException("the archive is not what the topics are")


def _answer(
    question: Callable[["Archive", str | None, Sequence[str]], Any],
    url: str | None,
    survey: str | None,
    columns: str | None,
    form: str,
    out: Path | None,
) -> None:
    from nightwire.archive import Archive
    from nightwire.archive.querying import FORMATS, parse_columns

    with Archive(_store(url).url) as found:
        answer = question(found, survey, parse_columns(columns))
        if form == "table" and out is None:
            _print_table(answer)
        elif form == "avro":
            _write_containers(found, answer, survey, out)
        else:
            _write(FORMATS["json" if form == "table" else form][1](answer), out)


def _print_table(answer: Any) -> None:
    from nightwire.archive.querying import flatten
    from nightwire.core.cli import Column, Listing, show_tables

    table = flatten(answer)
    if not len(table):
        click.echo("no rows", err=True)
        return
    rows = [[None if cell is None else str(cell) for cell in row.values()] for row in table.to_pylist()]
    show_tables(Listing([Column(name) for name in table.schema.names], rows))


def _write_containers(found: "Archive", answer: Any, survey: str | None, out: Path | None) -> None:
    from nightwire.archive.querying import avro_parts
    from nightwire.archive.storage import ArchiveError

    with ExitStack() as exits:
        files = list[BinaryIO]()
        for number, part in avro_parts(found.packets_of(answer, survey), found.decode):
            if number == len(files):
                files.append(_container_file(number, out, exits))
            files[number].write(part)
    if not files:
        raise ArchiveError("no whole alert is here: nothing was found, or they are no longer kept")


def _container_file(number: int, out: Path | None, exits: ExitStack) -> BinaryIO:
    if out is not None:
        path = out.with_stem(f"{out.stem}-{number + 1}") if number else out
        return exits.enter_context(path.open("wb"))
    if number:
        raise click.UsageError("the alerts have several schemas: with --out FILE each gets a file of its own")
    return sys.stdout.buffer


def _write(body: bytes, out: Path | None) -> None:
    if out is None:
        sys.stdout.buffer.write(body)
    else:
        out.write_bytes(body)


def _store(url: str | None) -> Any:
    from nightwire.archive.storage import ArchiveError, Store
    from nightwire.core.runtime import state_dir

    if url:
        return Store(url)
    if (state := state_dir()) is None:
        raise ArchiveError("no archive: name one with --archive URL, or NIGHTWIRE_ARCHIVE")
    return Store(state / "archive")


def _duration(text: str | None) -> timedelta | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
