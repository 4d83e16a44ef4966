"""The verbs `nightwire catalogue add`, `list`, `show` and `remove`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from nightwire.core.catalogues.catalogue import Description
    from nightwire.core.catalogues.store import CatalogueStore

state_option = click.option(
    "--state", type=click.Path(file_okay=False, path_type=Path), envvar="NIGHTWIRE_FILTERS_STATE",
    show_envvar=True,
    help="State directory of the filter engine, which has the catalogues.  [default: the running stack's]",
)  # fmt: skip
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@click.group()
def catalogue() -> None:
    """Catalogues of objects, and maps of the sky, that filters match alerts with.

    \b
    Example:
      nightwire catalogue add gaia gaia_dr3.parquet --columns source_id,phot_g_mean_mag
      nightwire filter submit --sql "WHERE MATCH('gaia', 2) IS NULL AND snr > 10" --name no-star
    """


@catalogue.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--ra", metavar="COLUMN", help="Right ascensions [deg].  [default: guessed by name or UCD]")
@click.option("--dec", metavar="COLUMN", help="Declinations [deg].")
@click.option("--columns", default="", metavar="A,B,…", help="Columns to keep beside.  [default: all]")
@click.option("--replace", is_flag=True, help="Take the place of the catalogue of that name.")
@state_option
def add(
    name: str, file: Path, ra: str | None, dec: str | None, columns: str, replace: bool, state: Path | None
) -> None:
    """Add the catalogue in FILE (CSV, Parquet, FITS, VOTable), or the map (MOC), as NAME.

    Filters ask for it by alert.match("NAME", RADIUS) and MATCH('NAME', RADIUS), for a map by
    alert.in_moc("NAME") and IN_MOC('NAME').  A filter keeps the version that it was accepted with,
    whatever is added later.

    \b
    Example:
      nightwire catalogue add gaia gaia_dr3.parquet --columns source_id,phot_g_mean_mag
      nightwire catalogue add footprint footprint.moc.fits
    """
    from rich.console import Console

    from nightwire.core.catalogues.store import Columns

    kept, store = tuple(one.strip() for one in columns.split(",") if one.strip()), _store(state)
    with Console(stderr=True).status(f"adding {file.name}"):
        found = store.add(name, file, Columns(ra, dec, kept), replace=replace)
    click.echo(f"{name}: {_size(found)}, version {found.version}")
    if found.remark:
        click.echo(found.remark)


@catalogue.command("list")
@state_option
@json_option
def list_(state: Path | None, as_json: bool) -> None:
    """List the catalogues.

    \b
    Example:
      nightwire catalogue list
    """
    store = _store(state)
    found = [store.describe(name) for name in store.names()]
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found]))
        return
    for one in found:
        click.echo(f"{one.name}  {one.version}  {_size(one)}  of {one.source}, added {one.added[:19]}")
    if not found:
        click.echo("no catalogues: `nightwire catalogue add NAME FILE` adds one")


@catalogue.command()
@click.argument("name")
@state_option
@json_option
def show(name: str, state: Path | None, as_json: bool) -> None:
    """Show catalogue NAME: its columns, and the versions that are kept.

    \b
    Example:
      nightwire catalogue show gaia
    """
    store = _store(state)
    found, versions = store.describe(name), store.versions(name)
    if as_json:
        click.echo(json.dumps(asdict(found) | {"versions": [one.version for one in versions]}))
        return
    click.echo(f"{name}: {_size(found)}, of {found.source}")
    for one in found.offered if found.kind == "table" else ():
        kind = found.columns.get(
            one, "arcsec, to the nearest" if one == "separation" else "objects within the radius"
        )
        click.echo(f"  {one}  ({kind})")
    for version in versions:
        now = "  now" if version.version == found.version else ""
        click.echo(f"version {version.version}  added {version.added[:19]}  {_size(version)}{now}")
    if found.remark:
        click.echo(found.remark)


@catalogue.command()
@click.argument("name")
@click.option("--old", is_flag=True, help="Its earlier versions alone.")
@state_option
def remove(name: str, old: bool, state: Path | None) -> None:
    """Remove catalogue NAME: filters that ask for it fail from then on, and say so.

    \b
    Example:
      nightwire catalogue remove gaia --old
    """
    count = _store(state).remove(name, old=old)
    click.echo(f"{name}: {count} version{'s' if count != 1 else ''} removed")


def _store(state: Path | None) -> "CatalogueStore":
    from nightwire.core.catalogues.store import catalogues_here, catalogues_of

    found = catalogues_of(state) if state else catalogues_here()
    if found is None:
        raise click.UsageError("no stack runs here: name the filter engine's state directory by --state")
    return found


def _size(found: "Description") -> str:
    if found.kind == "moc":
        return f"a map of {100 * found.share:.3g} % of the sky"
    return f"{found.rows:,} objects, {len(found.columns)} columns"
