"""The verbs `nightwire schema serve`, `list`, `show` and `check`."""

import json
import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

    from nightwire.schemas.survey_model.versions import Pair

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
registry_option = click.option(
    "--registry",
    metavar="URL",
    help="Schema registry.  [default: NIGHTWIRE_SCHEMA_REGISTRY, else the embedded stack's]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@click.group()
def schema() -> None:
    """Schemas: serve a registry, list them, show one, check versions.

    \b
    Example:
      nightwire schema show 100100
    """


@schema.command()
@click.option(
    "--bootstrap",
    metavar="HOST:PORT",
    envvar="KAFKA_BOOTSTRAP_SERVERS",
    show_envvar=True,
    required=True,
    help="Kafka's address.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(1, 65535), default=8081, show_default=True, help="Port to listen on."
)
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port of the pages /metrics and /health; 0 = none.",
)
@click.option("--tls", "tls_address", metavar="HOST:PORT", help="Where other machines read, by TLS.")
@click.option("--tls-cert", type=FILE, help="Certificate and chain for --tls (PEM).")
@click.option("--tls-key", type=FILE, help="Its private key.  [default: in the file of --tls-cert]")
@click.option("--tokens", default="", metavar="HOST:PORT", help="Where Kafka judges the site's own tokens.")
def serve(
    bootstrap: str,
    host: str,
    port: int,
    metrics_port: int,
    tls_address: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    tokens: str,
) -> None:
    """Serve a schema registry with Confluent's REST interface over the topic _schemas.

    \b
    Examples:
      nightwire schema serve --bootstrap 127.0.0.1:9092 --port 8081
      nightwire schema serve --tls 0.0.0.0:8443 --tls-cert server.pem
    """
    import logging

    from nightwire.schemas.registry.server import serve as serve_registry
    from nightwire.schemas.serving import tls_door

    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s %(message)s")
    door = tls_door(tls_address, tls_cert, tls_key)
    serve_registry(bootstrap, host, port, metrics_port, door, tokens)


@schema.command("list")
@registry_option
@json_option
def list_(registry: str | None, as_json: bool) -> None:
    """List the subjects of a registry with their latest version and its id.

    \b
    Example:
      nightwire schema list --registry http://127.0.0.1:8081
    """
    from nightwire.schemas import SchemaRegistry

    with SchemaRegistry(_url(registry)) as client:
        rows = [_row(subject, *client.latest(subject)) for subject in client.subjects()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        _print_table(rows)


@schema.command()
@click.argument("which", metavar="ID|SUBJECT")
@registry_option
@json_option
def show(which: str, registry: str | None, as_json: bool) -> None:
    """Show a schema's fields: type, unit and meaning.

    \b
    Example:
      nightwire schema show alerts.sim-value
    """
    from nightwire.schemas import SchemaRegistry

    with SchemaRegistry(_url(registry)) as client:
        found = client.schema(int(which)) if which.isdecimal() else client.latest(which)[2]
    if as_json:
        click.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        from rich.console import Console

        Console().print(field_table(found))


@schema.command()
@click.argument(
    "versions", metavar="VERSION...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path)
)
@click.option("--survey", metavar="NAME", help="Survey whose changes of names and units apply.")
@click.option("--markdown", is_flag=True, help="Print the page of docs/user/lsst-versions.md.")
@json_option
def check(versions: tuple[Path, ...], survey: str | None, markdown: bool, as_json: bool) -> None:
    """Show which versions of a schema can be read as which.

    A VERSION is a file, or a folder of files that name one another.  Exits with 1 where a version
    cannot be read as the next one, so that a survey's or our own schemas can be checked before they
    are published.

    \b
    Example:
      nightwire schema check --survey lsst schema/10/0 schema/11/0
    """
    from nightwire.schemas import SchemaError
    from nightwire.schemas.survey_model.description import description
    from nightwire.schemas.survey_model.versions import as_markdown, load_version, pairs

    try:
        changes = description(survey).changes if survey else ()
        found = pairs({_version_name(path): load_version(path) for path in versions}, changes)
    except (SchemaError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if markdown:
        click.echo(as_markdown(survey or "the", found), nl=False)
    elif as_json:
        click.echo(json.dumps([_pair_row(pair) for pair in found], indent=2))
    else:
        _print_rows([_pair_row(pair) for pair in found if pair.verdict != "yes"])
    names = [_version_name(path) for path in versions]
    broken = [pair for pair in found if pair.mismatches and (pair.writer, pair.reader) in pairwise(names)]
    if broken and not markdown:
        raise click.exceptions.Exit(1)


def _version_name(path: Path) -> str:
    """Return ``11.0`` for a folder ``11/0``, else the last part of its name."""
    parts = path.resolve().parts[-2:]
    if all(part.isdecimal() for part in parts):
        return ".".join(parts)
    return path.stem if path.is_file() else path.name


def _pair_row(pair: "Pair") -> dict[str, Any]:
    return {
        "written": pair.writer,
        "wanted": pair.reader,
        "read": pair.verdict,
        "why": [str(one) for one in (*pair.mismatches, *pair.conditions)],
    }


def _print_rows(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    if not rows:
        click.echo("every version can be read as every other")
        return
    table = Table("written", "wanted", "read", "why")
    for row in rows:
        table.add_row(row["written"], row["wanted"], row["read"], "\n".join(row["why"][:6]))
    Console().print(table)


def _row(subject: str, version: int, schema_id: int, found: dict[str, Any]) -> dict[str, Any]:
    space = found.get("namespace")
    name = found.get("name", found.get("type"))
    return {
        "subject": subject,
        "version": version,
        "id": schema_id,
        "name": f"{space}.{name}" if space and "." not in str(name) else name,
        "fields": len(found.get("fields", ())),
    }


def _print_table(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("subject", "version", "id", "schema", "fields")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    Console().print(table)


def _url(given: str | None) -> str | None:
    """Return the registry's address: the option's, the environment's, or the embedded stack's."""
    if url := given or os.environ.get("NIGHTWIRE_SCHEMA_REGISTRY"):
        return url
    here = Path.cwd()
    named = os.environ.get("NIGHTWIRE_STATE")
    folders = [Path(named)] if named else [folder / ".nightwire" for folder in (here, *here.parents)]
    for folder in folders:
        try:
            state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        except OSError:
            continue
        return str(state["endpoints"]["schema_registry"])
    return None


def field_table(schema: Mapping[str, Any]) -> "Table":
    """Return a table of all fields of a schema: dotted path, type, unit, meaning."""
    from rich.table import Table

    table = Table(title=f"{schema.get('name', schema.get('type'))}: {schema.get('doc', '')}")
    table.add_column("field", overflow="fold")
    for title in ("type", "unit", "meaning"):
        table.add_column(title)
    for path, kind, field in fields(schema):
        table.add_row(path, kind, str(field.get("unit", "")), str(field.get("doc", "")))
    return table


def fields(schema: Any, path: str = "") -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield dotted path, type in words, and definition of each field; inner fields follow.

    A record that is only named again (a second use) is not opened again.
    """
    for branch in schema if isinstance(schema, list) else [schema]:
        if not isinstance(branch, Mapping):
            continue
        if branch.get("type") == "record":
            for field in branch["fields"]:
                here = f"{path}.{field['name']}" if path else field["name"]
                yield here, type_words(field["type"]), field
                yield from fields(field["type"], here)
        for part in ("items", "values"):
            if part in branch:
                yield from fields(branch[part], path)


def type_words(kind: Any) -> str:
    """Return an Avro type in words: ``long or null``, ``array of PartitionRange``."""
    if isinstance(kind, list):
        words = [type_words(branch) for branch in kind if branch != "null"]
        return " or ".join([*words, "null"] if "null" in kind else words)
    if not isinstance(kind, Mapping):
        return str(kind)
    if kind["type"] in ("array", "map"):
        return f"{kind['type']} of {type_words(kind.get('items', kind.get('values')))}"
    return str(kind.get("logicalType", kind.get("name", kind["type"])))
