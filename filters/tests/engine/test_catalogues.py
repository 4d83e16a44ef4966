"""Catalogues in a running engine: matched, watched, replaced, refused; with and without Spark."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from click.testing import CliRunner

from nightwire.core.cli import main

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

PLACES = [(10.0, 20.0), (350.0, -5.5), (50.0, 0.0), (200.0, 1.0)]
"""Of every four alerts: at a star, at another, at a target, nowhere. [deg]"""

STARS = "ra,dec,name,g\n10,20,x,18.5\n350,-5.5,w,21\n"
NEWER = "ra,dec,name,g\n200,1,new,15\n"
TARGETS = "RAJ2000,DEJ2000,label\n50,0,mine\n,,nowhere\n"

CODE = (
    "def keep(alert):\n    try:\n        return alert.match('stars', 2)['g'] < 20\n"
    "    except TypeError:\n        return False\n"
)
"""It cannot be compiled: judged in the sandbox."""

Site = Any


def submit(site: Site, name: str, *options: str) -> None:
    done = site.nightwire("filter", "submit", "--name", name, "--survey", "sim", "--cap", "0", *options)
    assert done.returncode == 0, done.stderr


def write(site: Site, encode: Callable[..., bytes], first: int, count: int) -> None:
    """Write some alerts, at the four places in turn."""
    values = {
        str(number).encode(): encode(number, 100.0, ra=PLACES[number % 4][0], dec=PLACES[number % 4][1])
        for number in range(first, first + count)
    }
    site.write("alerts.sim", values)


def passed(site: Site, names: Iterable[str]) -> dict[str, set[int]]:
    """Return at which places alerts passed, by filter, with how many there were."""
    return {name: {numbers % 4 for numbers in _numbers(site, name)} for name in names}


def _numbers(site: Site, name: str) -> list[int]:
    return [int(dict(one.headers())["alert"]) for one in site.read(f"filter.me.{name}")]


WANTED = {"no-star": {2, 3}, "bright": {0}, "coded": {0}, "targets": {2}, "near": {2}}
WITH_SPARK = pytest.param([], marks=pytest.mark.proof)  # which takes a minute more


@pytest.mark.parametrize("words", [["--light"], WITH_SPARK], ids=["light", "spark"])
def test_filters_match_catalogues(
    words: list[str], site: Site, encode: Callable[..., bytes], until: Callable[..., Any]
) -> None:
    state = site.folder / ("light" if words else "spark")
    for name, text in (("stars", STARS), ("newer", NEWER), ("targets", TARGETS)):
        (site.folder / f"{name}.csv").write_text(text)
    (site.folder / "coded.py").write_text(CODE)
    (site.folder / "near.py").write_text("def keep(alert):\n    return alert.flux\n")
    add = ("catalogue", "add", "stars", "--state", str(state))
    done = catalogue(*add, str(site.folder / "stars.csv"))
    assert "stars: 2 objects, 4 columns, version " in done
    site.start(*words, state=state.name)
    submit(site, "no-star", "--sql", "MATCH('stars', 2) IS NULL")
    submit(site, "bright", "--sql", "MATCH('stars', 2, 'g') < 19")
    submit(site, "coded", str(site.folder / "coded.py"))
    submit(site, "targets", "--watchlist", str(site.folder / "targets.csv"), "--radius", "3")
    submit(site, "near", str(site.folder / "near.py"), "--watchlist", str(site.folder / "targets.csv"))
    before = {name: len(_numbers(site, name)) for name in WANTED}
    first = 1000 if words else 2000
    write(site, encode, first, 40)

    def all_there() -> bool:
        found = {name: _numbers(site, name)[before[name] :] for name in WANTED}
        return all(len(found[name]) >= 10 * len(places) for name, places in WANTED.items())

    until(all_there, 120, lambda: site.log.read_text()[-3000:])
    assert passed(site, WANTED) == WANTED
    shown = site.nightwire("filter", "show", "bright").stdout
    version = catalogue("catalogue", "list", "--state", str(state)).split()[1]
    assert f"# asks match('stars', 2) of version {version}\n" in shown
    refused = site.nightwire(
        "filter", "submit", "--name", "typo", "--survey", "sim", "--sql", "MATCH('star', 2) > 1"
    )
    assert refused.returncode == 1
    assert "there is no catalogue star; did you mean stars?" in refused.stderr
    if words:  # the past is judged by the same catalogues
        submit(site, "past", "--sql", "MATCH('stars', 2, 'name') = 'w'", "--backfill", "1d", "--wait")
        until(lambda: len(_numbers(site, "past")) == 10, 60)
        assert passed(site, ["past"]) == {"past": {1}}
    assert_replaced(site, [*add, str(site.folder / "newer.csv")], encode, until, first + 40)
    assert site.stop() == 0


def assert_replaced(
    site: Site, add: list[str], encode: Callable[..., bytes], until: Callable[..., Any], first: int
) -> None:
    """A live filter keeps its version; submitted again it has the new one."""
    catalogue(*add, "--replace")
    submit(site, "renewed", "--sql", "MATCH('stars', 2) IS NULL AND snr > 0")
    before = {name: len(_numbers(site, name)) for name in ("no-star", "renewed")}
    write(site, encode, first, 40)

    def new(name: str) -> list[int]:
        return _numbers(site, name)[before[name] :]

    until(lambda: len(new("no-star")) >= 20 and len(new("renewed")) >= 30, 120)
    assert {number % 4 for number in new("no-star")} == {2, 3}
    assert {number % 4 for number in new("renewed")} == {0, 1, 2}
    again = site.nightwire(
        "filter", "submit", "--name", "no-star", "--survey", "sim", "--cap", "0",
        "--sql", "MATCH('stars', 2) IS NULL",
    )  # fmt: skip
    assert "unchanged" not in again.stdout
    assert "tried on" in again.stdout


def catalogue(*words: str) -> str:
    """Run `nightwire catalogue`, which needs no Kafka; return what it printed."""
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    return done.stdout
