"""Catalogues on disk: versions, columns of matches, maps, and the command."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from astropy import units as u
from astropy.coordinates import Latitude, Longitude
from click.testing import CliRunner, Result
from mocpy import MOC

from nightwire.core.catalogues import Catalogue, CatalogueError, CatalogueStore, Columns, SkyMap
from nightwire.core.catalogues.catalogue import build
from nightwire.core.catalogues.commands import catalogue

COUNT = 5_000


@pytest.fixture
def store(tmp_path: Path) -> CatalogueStore:
    return CatalogueStore(tmp_path / "catalogues")


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of objects all over the sky."""
    random = np.random.default_rng(3)
    ra, dec = random.uniform(0, 360, COUNT), np.degrees(np.arcsin(random.uniform(-1, 1, COUNT)))
    mag = pa.array(random.normal(20, 1, COUNT).astype(np.float32), mask=random.random(COUNT) < 0.1)
    columns = {
        "ra": ra,
        "dec": dec,
        "id": np.arange(COUNT),
        "name": [f"o{n}" for n in range(COUNT)],
        "mag": mag,
    }
    path = tmp_path_factory.mktemp("objects") / "objects.parquet"
    pq.write_table(pa.table(columns), path)
    return path


def opened(store: CatalogueStore, name: str) -> Catalogue:
    found = store.open(name, store.describe(name).version)
    assert isinstance(found, Catalogue)
    return found


def csv(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["ra,dec,name", *lines]) + "\n")
    return path


@pytest.mark.parametrize("part_rows", [4_000_000, 300])
def test_a_match_has_the_columns_of_its_object(
    part_rows: int, store: CatalogueStore, objects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many parts the catalogue has."""
    monkeypatch.setattr("nightwire.core.catalogues.catalogue.PART_ROWS", part_rows)
    found = store.add("objects", objects)
    assert len(found.parts) == max(1, round(COUNT / part_rows))
    table = pq.read_table(objects)
    ra, dec = (table[name].to_numpy().copy() for name in ("ra", "dec"))
    ra[::2] = np.nan
    matched = opened(store, "objects").match(ra, dec, 0.1, ["count", "id", "name", "mag", "absent"])
    assert list(matched) == ["count", "id", "name", "mag"]
    there = np.arange(COUNT) % 2 == 1
    for name in ("id", "name", "mag"):
        wanted = table[name].to_pylist()
        assert matched[name].to_pylist() == [
            one if ok else None for one, ok in zip(wanted, there, strict=True)
        ]
    assert matched["count"].to_pylist() == [1 if ok else None for ok in there]


@pytest.mark.parametrize("height", [1.0, 0.37, 100 / 130])
def test_objects_at_the_borders_of_parts_are_found(
    height: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding puts an object into the part of its zone, so that keys ascend through all parts."""
    edges = np.arange(1, int(180 / height)) * height - 90
    dec = np.concatenate([edges, np.nextafter(edges, 90), np.nextafter(edges, -90)])
    ra = np.random.default_rng(5).uniform(0, 360, len(dec))
    monkeypatch.setattr("nightwire.core.catalogues.catalogue.PART_ROWS", 20)
    monkeypatch.setattr("nightwire.core.catalogues.catalogue.zone_height", lambda _: height)
    build(tmp_path, [pa.RecordBatch.from_pydict({"ra": ra, "dec": dec})], len(dec))
    keys = np.fromfile(tmp_path / "keys")
    assert len(keys) == len(dec)
    assert (np.diff(keys) >= 0).all()


def test_how_far_an_object_is_can_be_asked_alone(store: CatalogueStore, objects: Path) -> None:
    store.add("objects", objects)
    first = pq.read_table(objects).slice(0, 1)
    found = opened(store, "objects").match(first["ra"].to_numpy(), first["dec"].to_numpy(), 1, ["separation"])
    assert {name: one.to_pylist() for name, one in found.items()} == {
        "separation": [pytest.approx(0, abs=1e-6)]
    }


def test_where_nothing_is_near_all_columns_are_null(store: CatalogueStore, objects: Path) -> None:
    store.add("objects", objects)
    nothing = opened(store, "objects").match(
        np.array([np.nan]), np.array([0.0]), 1, ["separation", "name", "id"]
    )
    assert [str(one.type) for one in nothing.values()] == ["double", "string", "int64"]
    assert [one.to_pylist() for one in nothing.values()] == [[None]] * 3


def test_a_name_is_taken_once(store: CatalogueStore, tmp_path: Path) -> None:
    first = store.add("stars", csv(tmp_path / "a.csv", "1,2,a"))
    assert store.add("stars", tmp_path / "a.csv") == first
    other = csv(tmp_path / "b.csv", "1,2,b")
    with pytest.raises(CatalogueError, match=f"stars already, version {first.version}: --replace"):
        store.add("stars", other)
    assert store.current("stars") == first.version


def test_a_version_stays_when_another_takes_its_place(store: CatalogueStore, tmp_path: Path) -> None:
    first = store.add("stars", csv(tmp_path / "a.csv", "1,2,a"))
    before = store.open("stars", first.version)
    second = store.add("stars", csv(tmp_path / "a.csv", "1,2,b"), replace=True)
    assert store.current("stars") == second.version
    assert [one.version for one in store.versions("stars")] == [first.version, second.version]
    names = []
    for found in (before, store.open("stars", first.version), store.open("stars", second.version)):
        assert isinstance(found, Catalogue)
        names += found.match(np.array([1.0]), np.array([2.0]), 1, ["name"])["name"].to_pylist()
    assert names == ["a", "a", "b"]
    assert store.remove("stars", old=True) == 1
    with pytest.raises(CatalogueError, match=f"no catalogue stars in version {first.version}"):
        store.open("stars", first.version)
    assert store.remove("stars") == 1
    assert store.names() == []


def test_how_a_file_is_read_makes_another_version(store: CatalogueStore, tmp_path: Path) -> None:
    file = csv(tmp_path / "a.csv", "1,2,a")
    plain = store.add("stars", file).version
    assert store.add("stars", file, Columns("dec", "ra"), replace=True).version != plain


def test_owners_have_names_of_their_own(store: CatalogueStore, tmp_path: Path) -> None:
    for number, name in enumerate(["stars", "alice/stars", "bob/stars"]):
        store.add(name, csv(tmp_path / "a.csv", f"1,2,{number}"))
    assert store.names() == ["stars", "alice/stars", "bob/stars"]
    assert len({store.current(name) for name in store.names()}) == 3


@pytest.mark.parametrize("name", ["../x", "a/b/c", "Stars", "a/../b", "", ".", "a/"])
def test_names_stay_in_the_folder(name: str, store: CatalogueStore, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="is no name here"):
        store.add(name, csv(tmp_path / "a.csv", "1,2,a"))


def test_a_name_that_is_nearly_right_is_told(store: CatalogueStore, tmp_path: Path) -> None:
    store.add("gaia", csv(tmp_path / "a.csv", "1,2,a"))
    store.add("bob/gaja", tmp_path / "a.csv")
    with pytest.raises(CatalogueError, match=r"no catalogue gaja; did you mean gaia\?"):
        store.describe("gaja")  # and of what others have nothing


def test_a_file_that_fails_leaves_nothing(store: CatalogueStore, tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="line 3"):
        store.add("stars", csv(tmp_path / "a.csv", "1,2,a", "1,99,b"))
    assert [one.name for one in store.folder.iterdir()] == [".lock"]


@pytest.mark.parametrize("name", ["keys", "part-0000.arrow", "catalogue.json"])
@pytest.mark.parametrize("how", ["gone", "cut"])
def test_files_that_are_not_whole_are_told(
    name: str, how: str, store: CatalogueStore, tmp_path: Path
) -> None:
    version = store.add("stars", csv(tmp_path / "a.csv", "1,2,a", "3,4,b")).version
    file = store.folder / "shared" / "stars" / version / name
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(CatalogueError, match=r"cannot be opened|are not whole"):
        store.open("stars", version)


@pytest.mark.parametrize("form", ["fits", "json", "ascii"])
def test_a_map_holds_what_mocpy_says(form: str, store: CatalogueStore, tmp_path: Path) -> None:
    cone = {"lon": Longitude(2 * u.deg), "lat": Latitude(80 * u.deg), "radius": 15 * u.deg}
    made = MOC.from_cone(**cone, max_depth=9)
    made.save(str(tmp_path / "map"), format=form)
    found = store.add("map", tmp_path / "map")
    assert (found.kind, round(found.share, 6)) == ("moc", round(made.sky_fraction, 6))
    random = np.random.default_rng(4)
    ra, dec = random.uniform(-180, 360, 4000), random.uniform(55, 90, 4000)
    ra[0] = dec[1] = np.nan
    opened = store.open("map", found.version)
    assert isinstance(opened, SkyMap)
    inside = np.array(opened.contains(ra, dec))
    wanted = made.contains_lonlat((np.nan_to_num(ra) % 360) * u.deg, np.nan_to_num(dec) * u.deg)
    assert not inside[:2].any()
    assert (inside[2:] == wanted[2:]).all()
    assert 100 < inside.sum() < 3900


@pytest.mark.parametrize("cut", [1, 8, 16])
def test_a_map_that_is_not_whole_is_told(cut: int, store: CatalogueStore, tmp_path: Path) -> None:
    (tmp_path / "map").write_text("3/1-2 7 9")
    version = store.add("map", tmp_path / "map").version
    file = store.folder / "shared" / "map" / version / "ranges"
    file.write_bytes(file.read_bytes()[:-cut])
    with pytest.raises(CatalogueError, match="are not whole"):
        store.open("map", version)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "stars"}'])
def test_a_description_that_is_not_whole_is_told(text: str, store: CatalogueStore, tmp_path: Path) -> None:
    version = store.add("stars", csv(tmp_path / "a.csv", "1,2,a")).version
    (store.folder / "shared" / "stars" / version / "catalogue.json").write_text(text)
    with pytest.raises(CatalogueError, match=f"stars cannot be opened in version {version}"):
        store.describe("stars")


def ask(store: CatalogueStore, *words: object) -> Result:
    """Run a verb of `nightwire catalogue`."""
    return CliRunner().invoke(catalogue, [*map(str, words), "--state", str(store.folder.parent)])


def test_the_command_adds_lists_shows_and_removes(store: CatalogueStore, tmp_path: Path) -> None:
    file = csv(tmp_path / "stars.csv", "1,2,a", "3,,b")
    added = ask(store, "add", "stars", file)
    version = store.current("stars")
    assert added.output == (
        f"stars: 1 objects, 3 columns, version {version}\n1 rows without a position are left out (lines 3)\n"
    )
    assert f"stars  {version}  1 objects, 3 columns  of stars.csv, added 20" in ask(store, "list").output
    assert json.loads(ask(store, "list", "--json").output)[0]["name"] == "stars"
    assert "  separation  (arcsec, to the nearest)\n" in ask(store, "show", "stars").output
    assert ask(store, "remove", "stars").output == "stars: 1 version removed\n"
    assert "no catalogues" in ask(store, "list").output
    gone = ask(store, "show", "stars")
    assert isinstance(gone.exception, CatalogueError)


def test_what_no_filter_needs_goes_after_a_while(store: CatalogueStore, tmp_path: Path) -> None:
    versions = []
    for number in range(3):
        (tmp_path / "t.csv").write_text(f"ra,dec\n{number},2\n")
        for name in ("shared", "me/mine", "me/gone"):
            found = store.add(name, tmp_path / "t.csv", replace=True)
        versions.append(found.version)
    needed = {("me/mine", versions[0]), ("shared", versions[1])}
    assert store.prune(needed, 3600.0) == []  # seen for the first time
    assert store.prune(needed, 3600.0) == []
    needed.add(("me/mine", versions[1]))  # its owner went back to it
    assert len(store.prune(needed, 0.0)) == 4
    assert store.kept("me/mine") == {*versions}  # while one of them is needed, there is a present one
    assert store.kept("shared") == {*versions[1:]}
    assert [store.describe(name).version for name in store.names()] == [versions[2]] * 2
    assert store.prune({("me/mine", versions[0])}, 0.0) == []  # a new grace begins
    (tmp_path / "t.csv").write_text("ra,dec\n1,2\n")
    store.add("me/mine", tmp_path / "t.csv", replace=True)
    assert store.prune({("me/mine", versions[0])}, 0.0) == [f"shared {versions[1]}"]


def test_what_is_added_beside_a_prune_stays(store: CatalogueStore, tmp_path: Path) -> None:
    """As of an operator's command and the engine: an added version is there, and whole."""
    files, done = [csv(tmp_path / f"{n}.csv", f"{n},2,a") for n in range(2)], Event()

    def prune() -> None:
        while not done.is_set():
            store.prune(set(), 0.0)

    with ThreadPoolExecutor() as pool:
        pruned = pool.submit(prune)
        try:
            for number in range(100):
                found = store.add("stars", files[number % 2], replace=True)
                assert store.describe("stars", found.version) == found
        finally:
            done.set()
        pruned.result()


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from nightwire.core.catalogues import CatalogueStore

def half(folder, **_):
    (Path(folder) / "catalogue.json").unlink()
    os.kill(os.getpid(), signal.SIGKILL)

shutil.rmtree = half
CatalogueStore(Path(sys.argv[1])).remove("stars", old=True)
"""


def test_a_version_is_whole_or_gone_where_a_process_is_killed(store: CatalogueStore, tmp_path: Path) -> None:
    for number in range(2):
        file = csv(tmp_path / "stars.csv", f"{number},2,a")
        store.add("stars", file, replace=True)
    killed = subprocess.run([sys.executable, "-c", KILLED, store.folder], check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL
    assert [one.version for one in store.versions("stars")] == [store.current("stars")]
    store.add("stars", csv(tmp_path / "stars.csv", "0,2,a"), replace=True)
    assert len(opened(store, "stars").match(np.zeros(1), np.full(1, 2.0), 1.0, ["name"])["name"]) == 1
    (store.folder / ".adding-long-ago").mkdir()
    os.utime(store.folder / ".adding-long-ago", (0, 0))
    store.prune(set(), 3600.0)
    assert sorted(one.name for one in store.folder.iterdir()) == [".lock", "shared"]
