"""The verb `nightwire filter`."""

from pathlib import Path
from typing import Any

import click

from nightwire.core.options import bootstrap_option, json_option, metrics_port_option, registry_option

owner_option = click.option("--owner", default="me", show_default=True, help="Whose filter.")
timeout_option = click.option(
    "--timeout", default=60.0, show_default=True, help="Longest wait for the engine's answer. [s]"
)


@click.group("filter")
def filter_() -> None:
    """Filters: your Python function, judged over every alert, its alerts in a topic of your own.

    \b
    Example:
      nightwire filter submit bright.ipynb --name bright
      nightwire filter list
      nightwire subscribe filter.me.bright
    """


@filter_.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--name", required=True, metavar="NAME", help="The filter's name: small letters, digits, '-'.")
@owner_option
@click.option(
    "--survey", default="*", show_default=True, metavar="S", help="Whose alerts it judges; * for all."
)
@click.option(
    "--function", "entry", default="keep", show_default=True, metavar="F", help="The function of one alert."
)
@timeout_option
@bootstrap_option
def submit(
    file: Path, name: str, owner: str, survey: str, entry: str, timeout: float, bootstrap: str | None
) -> None:
    """Make the function in FILE (.ipynb or .py) a live filter.

    What travels is the function with the helper functions, imports and constants it uses; the file is not
    run.  The engine tries it on recent alerts and answers; exits 0 when it is live, 1 when it is refused.

    \b
    Example:
      nightwire filter submit bright.ipynb --name bright --survey lsst
    """
    from nightwire.filters._submit import source_of
    from nightwire.filters.language import FilterError
    from nightwire.schemas.topics import NameError_, filter_topic

    try:
        topic = filter_topic(owner, name)
        source = source_of(file, entry)
    except (FilterError, NameError_) as error:
        _refused(f"{file.name} is no filter:", getattr(error, "reasons", [str(error)]))
    answer = _ask(bootstrap, "submit", owner, name, timeout, survey=survey, source=source, entry=entry)
    if not answer["accepted"]:
        _refused(f"{owner}/{name} is refused:", answer["reasons"])
    click.echo(f"{owner}/{name} is live in version {answer['version']} ({'; '.join(answer['reasons'])})")
    click.echo(f"read it:  nightwire subscribe {topic}")


@filter_.command()
@click.argument("name")
@owner_option
@timeout_option
@bootstrap_option
def remove(name: str, owner: str, timeout: float, bootstrap: str | None) -> None:
    """Stop filter NAME.  What had passed stays in its topic.

    \b
    Example:
      nightwire filter remove bright
    """
    answer = _ask(bootstrap, "remove", owner, name, timeout)
    if not answer["accepted"]:
        _refused(f"{owner}/{name} is not removed:", answer["reasons"])
    click.echo(
        f"{owner}/{name} is removed (version {answer['version']} was live; {'; '.join(answer['reasons'])})"
    )


@filter_.command("list")
@json_option
@bootstrap_option
def list_(as_json: bool, bootstrap: str | None) -> None:
    """List the filters, and what became of the alerts they judged.

    \b
    Example:
      nightwire filter list --json
    """
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._submit import lines

    found = lines(find_endpoints(bootstrap).kafka)
    if as_json:
        click.echo(json.dumps([asdict(line) for line in found], indent=2))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("owner", "name", "version", "survey"):
        table.add_column(column)
    for column in ("evaluated", "passed", "rejected", "faulted"):
        table.add_column(column, justify="right")
    for line in found:
        version = str(line.version) if line.live else "off"
        counts = (line.evaluated, line.passed, line.rejected, line.faulted)
        table.add_row(line.owner, line.name, version, line.survey, *(f"{count:,}" for count in counts))
    Console().print(table if found else "no filters yet: `nightwire filter submit FILE --name NAME`")


@filter_.command()
@click.argument("name")
@owner_option
@click.option("--version", type=int, help="Which version.  [default: the live one, else the newest]")
@bootstrap_option
def show(name: str, owner: str, version: int | None, bootstrap: str | None) -> None:
    """Print the source of filter NAME as it runs, with the line numbers that faults refer to.

    \b
    Example:
      nightwire filter show bright
    """
    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._submit import filters

    known = filters(find_endpoints(bootstrap).kafka)
    wanted = version or known.live_version(owner, name) or known.newest(owner, name)
    record = known.versions.get((owner, name, wanted))
    if record is None:
        raise click.ClickException(f"no filter {owner}/{name}{f' version {version}' if version else ''}")
    state = "live" if known.live_version(owner, name) == wanted else "not live"
    click.echo(
        f"# {owner}/{name} version {wanted}, {state}, survey {record['survey']}, {record['submitted']}"
    )
    click.echo(f"# reads {', '.join(record['fields']) or 'nothing that can be seen'}")
    for number, line in enumerate(record["source"].splitlines(), 1):
        click.echo(f"{number:4}  {line}")


@filter_.command()
@click.option(
    "--state", required=True, type=click.Path(file_okay=False, path_type=Path), help="State directory."
)
@click.option(
    "--batch", default=2500, show_default=True, type=click.IntRange(1), help="Most records in a batch."
)
@click.option("--memory", default="768m", show_default=True, help="Heap of Spark's Java process.")
@click.option("--master", default="local[2,4]", show_default=True, help="Spark master.")
@bootstrap_option
@registry_option
@metrics_port_option
def run(
    state: Path,
    batch: int,
    memory: str,
    master: str,
    bootstrap: str | None,
    registry: str | None,
    metrics_port: int,
) -> None:
    """Run the filter engine: judge every alert by every live filter, until SIGTERM or Ctrl-C.

    Filters run with this process's rights; accept them only from people you trust.

    \b
    Example:
      nightwire filter run --state /var/lib/nightwire/filters
    """
    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._engine import Settings
    from nightwire.filters._run import serve

    at = find_endpoints(bootstrap, registry)
    if at.schema_registry is None:
        raise click.UsageError(
            "no schema registry: name one with --registry URL or NIGHTWIRE_SCHEMA_REGISTRY"
        )
    raise SystemExit(
        serve(Settings(at.kafka, at.schema_registry, state.resolve(), master, memory, batch), metrics_port)
    )


def _ask(
    bootstrap: str | None, action: str, owner: str, name: str, timeout: float, **about: Any
) -> dict[str, Any]:
    from rich.console import Console

    from nightwire.core.endpoints import find_endpoints
    from nightwire.filters._submit import NoAnswerError, ask

    where = find_endpoints(bootstrap).kafka
    try:
        with Console(stderr=True).status(f"waiting for the engine to {action} {owner}/{name}"):
            return dict(ask(where, action, owner, name, timeout=timeout, **about))
    except NoAnswerError as error:
        raise click.ClickException(str(error)) from error


def _refused(what: str, reasons: list[str]) -> None:
    click.echo(what, err=True)
    for reason in reasons:
        click.echo(f"  {reason}", err=True)
    raise SystemExit(1)
