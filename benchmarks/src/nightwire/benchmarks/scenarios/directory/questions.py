"""Tycho's experiments of the registry: one record, all records, many clients, many sites."""

import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from nightwire.benchmarks import Context, Experiment, Figures, Kind, RunError
from nightwire.benchmarks.model.statistics import median, quantile
from nightwire.benchmarks.scenarios.directory.asking import ONE, answer_times, answered, served

ALL = "SELECT site, kind, name, owner, endpoints, state FROM peers LIMIT {}"
PLAIN = "SELECT site, kind, name, owner, endpoints, state FROM entries WHERE name = ?"
MOST = 10_000
"""Most rows of an answer."""
MILLI = 1e3


class Experiments(Experiment):
    """Experiments on directories that are served for all of their runs."""

    def __init__(self, context: Context) -> None:
        self._context, self._ports = context, dict[int, int]()

    def _serve(self, key: int, records: int, sites: int = 1) -> None:
        self._context.say(f"making a directory of {sites:,} × {records:,} entries")
        self._ports[key] = self.exits.enter_context(served(self._context, records, sites))


class OneRecord(Experiments):
    """One record by its name, of directories that grow (S1), beside a plain SQLite file."""

    name = "one-record"

    def __init__(self, context: Context, counts: Sequence[int]) -> None:
        super().__init__(context)
        self._counts = counts

    def prepare(self) -> None:
        """Serve a directory of each size, and make a plain file of it."""
        self._files = {
            count: plain_file(self._context.folder / f"plain-{count}", count) for count in self._counts
        }
        for count in self._counts:
            self._serve(count, count)

    def run_once(self, kind: Kind) -> Figures:
        """Ask each."""
        if kind is Kind.BASELINE:
            return {f"one_of_{count}_ms": plain_time(file) for count, file in self._files.items()}
        found = {count: median(answer_times(port, ONE)) * MILLI for count, port in self._ports.items()}
        growth = max(found.values()) / min(found.values())
        return {f"one_of_{count}_ms": taken for count, taken in found.items()} | {"one_growth": growth}


class AllRecords(Experiments):
    """All records (S2), as many as an answer may have."""

    name = "all-records"
    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0}

    def prepare(self) -> None:
        """Serve a directory."""
        self._serve(MOST, MOST)

    def run_once(self, kind: Kind) -> Figures:
        """Ask for all, and for one."""
        if len(answered(self._ports[MOST], ALL.format(MOST))) != MOST:
            raise RunError("not all records came")
        every = median(answer_times(self._ports[MOST], ALL.format(MOST), turns=10))
        one = median(answer_times(self._ports[MOST], ALL.format(1), turns=50))
        return {"record_us": (every - one) / (MOST - 1) * 1e6, f"all_of_{MOST}_ms": every * MILLI}


class Clients(Experiments):
    """One record of a thousand, asked for by ever more clients at once."""

    name = "clients"
    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0}

    def __init__(self, context: Context, counts: Sequence[int]) -> None:
        super().__init__(context)
        self._counts = counts

    def prepare(self) -> None:
        """Serve a directory."""
        self._serve(0, 1_000)

    def run_once(self, kind: Kind) -> Figures:
        """Ask as one client, as ten, …"""
        figures: Figures = {}
        for count in self._counts:
            taken = answer_times(self._ports[0], ONE, clients=count, turns=max(5, 2_000 // count))
            figures[f"clients_{count}_ms"] = sum(taken) / len(taken) * MILLI
            figures[f"clients_{count}_p99_ms"] = quantile(taken, 0.99) * MILLI
        return figures | {"client_ms": (figures["clients_100_ms"] - figures["clients_1_ms"]) / 99}


class Sites(Experiments):
    """One record of one site, where a thousand sites are known, and where one is."""

    name = "sites"

    def prepare(self) -> None:
        """Serve a thousand sites, and one."""
        self._serve(1000, 100, 1000)
        self._serve(1, 100)

    def run_once(self, kind: Kind) -> Figures:
        """Ask."""
        port = self._ports[1000 if kind is Kind.SUBJECT else 1]
        return {"sites_ms": median(answer_times(port, f"{ONE} AND site = 'site-0'")) * MILLI}


def plain_file(path: Path, count: int) -> Path:
    """Return a SQLite file of *count* entries, with an index of their names."""
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE entries (site, kind, name PRIMARY KEY, owner, endpoints, state) WITHOUT ROWID"
        )
        rows = (
            ("site-0", "producer", f"peer-{number}", f"owner-{number % 100}", "{}", "listed")
            for number in range(count)
        )
        db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", rows)
    db.close()
    return path


def plain_time(path: Path, turns: int = 500) -> float:
    """Return the median time of a question to a plain file. [ms]"""
    taken, db = list[float](), sqlite3.connect(path)
    for _turn in range(turns):
        asked = time.perf_counter()
        db.execute(PLAIN, ("peer-7",)).fetchall()
        taken.append(time.perf_counter() - asked)
    db.close()
    return median(taken) * MILLI
