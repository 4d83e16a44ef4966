"""The catalogues in a folder: added, replaced, listed, removed, and opened by name and version.

    FOLDER/shared/NAME/current            the version that is used from now on
    FOLDER/shared/NAME/VERSION/…          each version that is kept
    FOLDER/owned/OWNER/NAME/…             the same of a catalogue ``OWNER/NAME``

Versions are never changed: whoever has one open, or was told of one, finds the same in it for ever,
until it is removed.
"""

import fcntl
import hashlib
import json
import re
import shutil
import time
import uuid
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

import pyarrow as pa

from nightwire.core.catalogues.catalogue import Catalogue, Description, build
from nightwire.core.catalogues.files import CatalogueError, LeftOut, beginning, is_map, open_file, told
from nightwire.core.catalogues.sky_map import SkyMap, read_map
from nightwire.core.runtime.endpoints import state_dir
from nightwire.schemas import meant
from nightwire.schemas.topics import NameError_, check_name

VERSION = re.compile(r"[0-9a-f]{12}")

UNNEEDED = "unneeded"
"""File of a version that no filter needs, since when it was made."""

LONGEST = 86_400.0
"""After so long nobody adds a catalogue any more: he was killed. [s]"""

READ_AT_ONCE = 1 << 20
"""Of a file that is hashed. [byte]"""


@dataclass(frozen=True)
class Columns:
    """How a file is to be read: its columns by name, where they are not to be guessed.

    Of CSV, *texts* are texts, whatever they look like.
    """

    ra: str | None = None
    dec: str | None = None
    kept: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()


ANY_COLUMNS = Columns()


class CatalogueStore:
    """The catalogues in a folder.

    Args:
        folder: Which one; it need not be there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(
        self, name: str, path: Path, columns: Columns = ANY_COLUMNS, *, replace: bool = False
    ) -> Description:
        """Add the catalogue, or the map, in a file; return what is known of it.

        Raises:
            CatalogueError: It is none; or there is one of that name, and it is not to *replace* it.
        """
        home = self._home(name)
        begin = beginning(path)
        version = _version(path, columns)
        present = self.current(name)
        if present not in (None, version) and not replace:
            raise CatalogueError(
                f"there is a catalogue {name} already, version {present}: --replace puts this one in its "
                "place for filters that are submitted from now on"
            )
        while not self._taken(home, version):
            with _made_apart(home / version) as work:
                made = (_map_of if is_map(begin) else _table_of)(work, name, version, path, columns)
                (work / "catalogue.json").write_text(json.dumps(asdict(made)))
        return Description.of(home / version)

    def current(self, name: str) -> str | None:
        """Return the version of a catalogue that filters get that are submitted now; None: none."""
        try:
            return (self._home(name) / "current").read_text().strip()
        except FileNotFoundError:
            return None

    def describe(self, name: str, version: str | None = None) -> Description:
        """Return what is known of a catalogue.

        Raises:
            CatalogueError: There is none, did you mean …; or its files are not whole.
        """
        wanted = version or self.current(name)
        folder = self._home(name) / (wanted or "")
        if wanted is None or not VERSION.fullmatch(wanted) or not folder.is_dir():
            of = f" in version {version}" if version else ""
            known = [one for one in self.names() if owner_of(one) in ("", owner_of(name))]
            raise CatalogueError(f"there is no catalogue {name}{of}{meant(name, known)}")
        with _whole(name, wanted):
            return Description.of(folder)

    def names(self) -> list[str]:
        """Return the names of all catalogues, shared ones first."""
        shared = (one.parent for one in self.folder.glob("shared/*/current"))
        owned = (one.parent for one in self.folder.glob("owned/*/*/current"))
        return [
            *sorted(one.name for one in shared),
            *sorted(f"{one.parent.name}/{one.name}" for one in owned),
        ]

    def versions(self, name: str) -> list[Description]:
        """Return what is known of all versions of a catalogue that are kept, the oldest first."""
        found = (Description.of(self._home(name) / one) for one in self.kept(name))
        return sorted(found, key=lambda one: one.added)

    def remove(self, name: str, *, old: bool = False) -> int:
        """Remove a catalogue, or its *old* versions alone; return how many versions that were.

        Raises:
            CatalogueError: There is none.
        """
        with self._alone():
            current = self.describe(name).version
            gone = [one.version for one in self.versions(name) if not (old and one.version == current)]
            for version in gone:
                shutil.rmtree(self._home(name) / version)
            if not old:
                _leave(self._home(name))
            return len(gone)

    def prune(self, needed: Container[tuple[str, str]], grace: float) -> list[str]:
        """Remove the versions that nobody has needed for so long; return their names.

        The present version of a shared catalogue stays: it was added for filters to come.

        Args:
            needed: Names and versions that filters need.
            grace: Since a look first found that nobody needs it. [s]
        """
        with self._alone():
            for work in [*self.folder.glob("shared/*/.adding-*"), *self.folder.glob("owned/*/*/.adding-*")]:
                if time.time() - work.stat().st_mtime >= LONGEST:
                    shutil.rmtree(work)
            return self._prune(needed, grace)

    def _prune(self, needed: Container[tuple[str, str]], grace: float) -> list[str]:
        gone = []
        for name in self.names():
            home, current = self._home(name), self.current(name)
            for version in self.kept(name):
                mark = home / version / UNNEEDED
                if (name, version) in needed or (version == current and not owner_of(name)):
                    mark.unlink(missing_ok=True)
                elif not mark.exists():
                    mark.touch()
                elif time.time() - mark.stat().st_mtime >= grace:
                    shutil.rmtree(home / version)
                    gone.append(f"{name} {version}")
            if not self.kept(name):
                _leave(home)
        return gone

    def open(self, name: str, version: str) -> Catalogue | SkyMap:
        """Return a version, opened; the same for all who ask.

        Raises:
            CatalogueError: It is not there, or its files are not whole.
        """
        folder = self._home(name) / version
        if not VERSION.fullmatch(version) or not folder.is_dir():
            self.describe(name, version or "none")
        with _whole(name, version):
            return _opened(folder)

    def _home(self, name: str) -> Path:
        owner, slash, plain = name.rpartition("/")
        try:
            check_name(plain)
            return (
                self.folder / "owned" / check_name(owner) / plain if slash else self.folder / "shared" / plain
            )
        except NameError_ as error:
            raise CatalogueError(str(error)) from error

    def kept(self, name: str) -> frozenset[str]:
        """Return which versions of a catalogue are kept."""
        return frozenset(one.name for one in self._home(name).glob("*") if VERSION.fullmatch(one.name))

    def go_back(self, name: str, current: str | None, kept: Container[str]) -> None:
        """Let a catalogue be what it was.

        Args:
            name: Of it.
            current: The version that filters get that are submitted from now on; None: none.
            kept: Versions that stay; others are removed.
        """
        home = self._home(name)
        if current is None:
            (home / "current").unlink(missing_ok=True)
        elif home.is_dir():
            self._point(home, current)
        for one in self.kept(name):
            if one not in kept:
                shutil.rmtree(home / one)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other process change what there is, within the block."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _taken(self, home: Path, version: str) -> bool:
        """Whether a version is there, is the present one now, and counts as needed."""
        with self._alone():
            if there := (home / version).is_dir():
                (home / version / UNNEEDED).unlink(missing_ok=True)
                self._point(home, version)
            return there

    @staticmethod
    def _point(home: Path, version: str) -> None:
        fresh = home / f".current-{version}"
        fresh.write_text(version)
        fresh.replace(home / "current")


def _leave(home: Path) -> None:
    """Remove the folder of a catalogue without versions, unless one is being made in it."""
    (home / "current").unlink(missing_ok=True)
    with suppress(OSError):
        home.rmdir()


@contextmanager
def _whole(name: str, version: str) -> Iterator[None]:
    """Say of errors which catalogue they are of."""
    try:
        yield
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        raise CatalogueError(f"catalogue {name} cannot be opened in version {version}: {error}") from error


def owner_of(name: str) -> str:
    """Return the owner of a catalogue; empty where it is shared."""
    return name.rpartition("/")[0]


def catalogues_of(state: Path) -> CatalogueStore:
    """Return the catalogues of the filter engine whose state folder is *state*.

    Every machine that judges sees that folder, as it does the rest of the state; where catalogues
    are large, ``catalogues`` in it may be a link to another disk.
    """
    return CatalogueStore(state / "catalogues")


def catalogues_here() -> CatalogueStore | None:
    """Return the catalogues of the stack that runs here; None where there is none."""
    folder = state_dir()
    return None if folder is None else catalogues_of(folder / "filters")


@lru_cache(maxsize=256)
def _opened(folder: Path) -> Catalogue | SkyMap:
    described = Description.of(folder)
    return SkyMap(folder, described) if described.kind == "moc" else Catalogue(folder, described)


def _version(path: Path, columns: Columns) -> str:
    read = {name: one for name, one in asdict(columns).items() if one or name != "texts"}
    found = hashlib.sha256(json.dumps(read).encode())
    with path.open("rb") as file:
        while portion := file.read(READ_AT_ONCE):
            found.update(portion)
    return found.hexdigest()[:12]


@contextmanager
def _made_apart(folder: Path) -> Iterator[Path]:
    """Yield a folder that becomes *folder* at the end, or is gone where something fails."""
    work = folder.with_name(f".adding-{uuid.uuid4().hex}")
    work.mkdir(parents=True)
    try:
        yield work
        if not folder.is_dir():
            work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _table_of(work: Path, name: str, version: str, path: Path, columns: Columns) -> Description:
    file, left_out = open_file(path, columns.texts), LeftOut()
    with told(path):
        layout = file.layout(columns.ra, columns.dec, columns.kept)
        built = build(work, file.read(layout, left_out), file.rows)
        if not built["rows"]:
            why = str(left_out) if left_out.count else "it has no rows"
            raise CatalogueError(f"there is no position in it: {why}")
    remark = str(left_out) if left_out.count else ""
    return Description(name, version, "table", source=path.name, added=_now(), remark=remark, **built)


def _map_of(work: Path, name: str, version: str, path: Path, columns: Columns) -> Description:
    if columns != ANY_COLUMNS:
        raise CatalogueError(f"{path.name} is a map of the sky, which has no columns")
    ranges, share = read_map(path)
    ranges.tofile(work / "ranges")
    return Description(name, version, "moc", len(ranges) // 2, path.name, _now(), share=share)
