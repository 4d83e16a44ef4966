"""The catalogues in a folder: added, replaced, listed, removed, and opened by name and version.

    FOLDER/shared/NAME/current            the version that is used from now on
    FOLDER/shared/NAME/VERSION/…          each version that is kept
    FOLDER/owned/OWNER/NAME/…             the same of a catalogue ``OWNER/NAME``

Versions are never changed: whoever has one open, or was told of one, finds the same in it for ever,
until it is removed.  They come and go by a rename, under a lock that all processes share: a version
is whole, wherever one of them is killed, and none is removed that another one just adds.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Container, Iterator
from contextlib import contextmanager
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

CONTENT = re.compile(rf"current|{VERSION.pattern}")
"""What is in a catalogue's folder."""

ADDING, REMOVED = ".adding-", ".removed-"
"""How folders begin that are no version yet, or no longer."""

ABANDONED = 7 * 86_400.0
"""So old a folder is of a process that was killed. [s]"""

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
        begin, home = beginning(path), self._home(name)
        version = _version(path, columns)
        with self._locked():
            self._check_free(name, version, replace)
            if (home / version).is_dir():
                return self._used(home, version)
        with self._work() as work:
            made = (_map_of if is_map(begin) else _table_of)(work, name, version, path, columns)
            (work / "catalogue.json").write_text(json.dumps(asdict(made)))
            with self._locked():
                self._check_free(name, version, replace)
                if not (home / version).is_dir():
                    home.mkdir(parents=True, exist_ok=True)
                    work.rename(home / version)
                return self._used(home, version)

    def _check_free(self, name: str, version: str, replace: bool) -> None:
        present = self.current(name)
        if present not in (None, version) and not replace:
            raise CatalogueError(
                f"there is a catalogue {name} already, version {present}: --replace puts this one in its "
                "place for filters that are submitted from now on"
            )

    def _used(self, home: Path, version: str) -> Description:
        """Let a version be the present one, and needed from now on."""
        (home / version / UNNEEDED).unlink(missing_ok=True)
        self._point(home, version)
        return Description.of(home / version)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes, and threads, from adding and removing within the block."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self.folder / ".lock", os.O_RDONLY | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    @contextmanager
    def _work(self) -> Iterator[Path]:
        """Yield a folder to build a version in, which is gone at the end unless it became one."""
        work = self.folder / f"{ADDING}{uuid.uuid4().hex}"
        work.mkdir(parents=True)
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _remove(self, *folders: Path) -> None:
        """Remove folders, each in one moment."""
        for folder in folders:
            gone = self.folder / f"{REMOVED}{uuid.uuid4().hex}"
            folder.rename(gone)
            shutil.rmtree(gone)

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
        return [name for name in self._all() if self.current(name) is not None]

    def _all(self) -> list[str]:
        """Return the names of all catalogues; also of such as have no present version."""
        shared, owned = (
            {one.parent for one in self.folder.glob(f"{of}/*") if CONTENT.fullmatch(one.name)}
            for of in ("shared/*", "owned/*/*")
        )
        names = sorted(f"{one.parent.name}/{one.name}" for one in owned)
        return [*sorted(one.name for one in shared), *names]

    def versions(self, name: str) -> list[Description]:
        """Return what is known of all versions of a catalogue that are kept, the oldest first."""
        found = (Description.of(self._home(name) / one) for one in self.kept(name))
        return sorted(found, key=lambda one: one.added)

    def remove(self, name: str, *, old: bool = False) -> int:
        """Remove a catalogue, or its *old* versions alone; return how many versions that were.

        Raises:
            CatalogueError: There is none.
        """
        with self._locked():
            home, current = self._home(name), self.describe(name).version
            gone = self.kept(name) - ({current} if old else set())
            self._remove(*([home / one for one in gone] if old else [home]))
        return len(gone)

    def prune(self, needed: Container[tuple[str, str]], grace: float) -> list[str]:
        """Remove the versions that nobody has needed for so long; return their names.

        The present version of a shared catalogue stays: it was added for filters to come; that of
        an owner's stays as long as an earlier one is needed.

        Args:
            needed: Names and versions that filters need.
            grace: Since a look first found that nobody needs it. [s]
        """
        gone = []
        with self._locked():
            for name in self._all():
                home, kept = self._home(name), self.kept(name)
                held = {one for one in kept if (name, one) in needed}
                spared = held | ({self.current(name)} if held or not owner_of(name) else set())
                for version in kept:
                    mark = home / version / UNNEEDED
                    if version in spared:
                        mark.unlink(missing_ok=True)
                    elif not mark.exists():
                        mark.touch()
                    elif time.time() - mark.stat().st_mtime >= grace:
                        self._remove(home / version)
                        gone.append(f"{name} {version}")
                if not self.kept(name):
                    self._remove(home)
            self._sweep()
        return gone

    def _sweep(self) -> None:
        """Remove what processes left that were killed."""
        for one in self.folder.glob(f"{REMOVED}*"):
            shutil.rmtree(one)
        for one in self.folder.glob(f"{ADDING}*"):
            if time.time() - one.stat().st_mtime >= ABANDONED:
                shutil.rmtree(one)

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

    def go_back(self, name: str, version: str, before: str | None, *, kept: bool) -> None:
        """Take back that a version was added, unless another one was meanwhile.

        Args:
            name: Of the catalogue.
            version: What was added.
            before: The version that was the present one then; None: none was.
            kept: Whether it was there before: it stays.
        """
        home = self._home(name)
        with self._locked():
            if self.current(name) != version:
                return
            if before is None:
                (home / "current").unlink()
            else:
                self._point(home, before)
            if not kept and version != before:
                self._remove(home / version)

    @staticmethod
    def _point(home: Path, version: str) -> None:
        fresh = home / f".current-{version}"
        fresh.write_text(version)
        fresh.replace(home / "current")


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
