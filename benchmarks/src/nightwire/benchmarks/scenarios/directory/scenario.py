"""The scenario `directory`: its figures, and what they take."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks.environment.cluster import Cluster
from nightwire.benchmarks.model.drawing import figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.model.scenario import (
    Context,
    Experiment,
    Figure,
    Needs,
    Outcome,
    Published,
    Scenario,
    Size,
)
from nightwire.benchmarks.scenarios.directory.living import Deaths, Rebuild
from nightwire.benchmarks.scenarios.directory.questions import MOST, AllRecords, Clients, OneRecord, Sites

RECORDS: Mapping[str, Sequence[int]] = {
    "quick": (10, 1_000, 100_000),
    "full": (10, 1_000, 100_000, 1_000_000),
}
CLIENTS = (1, 10, 100, 1_000)
PLAIN = "a plain SQLite file of as many records, asked in the same process"
TYCHO = "Nine computers with two Xeons of 2.8 GHz, 2007; a registry in Java, by HTTP"


def figures_of() -> Iterator[Figure]:
    """Yield the figures."""
    for count in RECORDS["full"]:
        yield Figure(
            f"one_of_{count}_ms", "ms", f"One record of {count:,}, by SQL over HTTP, median", baseline=PLAIN,
            headline=True, published=Published(3.5, "Tycho", TYCHO) if count <= 100_000 else None,
        )  # fmt: skip
    yield Figure("one_growth", "1", "The slowest of these over the fastest")
    yield Figure(
        "record_us", "µs", "Each further record of an answer", headline=True,
        published=Published(80, "Tycho", TYCHO),
    )  # fmt: skip
    yield Figure(f"all_of_{MOST}_ms", "ms", f"An answer of {MOST:,} records, median")
    for count in CLIENTS:
        yield Figure(f"clients_{count}_ms", "ms", f"{count:,} clients at once, one record, mean")
        yield Figure(f"clients_{count}_p99_ms", "ms", f"{count:,} clients at once, one record, 99 %")
    yield Figure(
        "client_ms", "ms", "Each further client, up to a hundred, mean", headline=True,
        published=Published(2.3, "Tycho", TYCHO),
    )  # fmt: skip
    yield Figure(
        "sites_ms", "ms", "One record of one of 1,000 sites with 100 records each, median", headline=True,
        baseline="the same of a directory that knows one site",
    )  # fmt: skip
    yield Figure("death_s", "s", "From kill -9 of a process until it is gone", headline=True)
    yield Figure("rebuild_s", "s", "From the start of a directory until it has read its log", headline=True)
    yield Figure("rebuild_mb", "MB", "Its memory then")


class DirectoryScenario(Scenario):
    """Questions to the directory."""

    name = "directory"
    title = "The directory: who is there, and alive"
    measures = (
        "Questions in SQL over HTTP to a directory's process, by clients that keep their connection and ask "
        "again as soon as they are answered: one record of directories that grow, all records of an answer, "
        "ever more clients, a thousand sites. On a Kafka of its own: how soon a killed process is gone, and "
        "how long a directory takes to read a long log. Clients and directory share a machine."
    )
    figures: Sequence[Figure] = tuple(figures_of())
    standard: Mapping[str, Size] = {
        "quick": Size(alerts=100_000, pairs=3, rate=1.0, profile="quick"),
        "full": Size(alerts=1_000_000, pairs=5, rate=1.0, profile="full"),
    }

    def needs(self, size: Size) -> Needs:
        """Return what a run of *size* takes; its ``alerts`` are the records of the log."""
        return Needs(
            disk=2 * 10**9 + size.alerts * 1_000,
            memory=2 * 10**9 + size.alerts * 1_000,
            seconds=60 + size.alerts * 1e-4 + size.pairs * (60 + size.alerts * 6e-5),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return Tycho's experiments of its registry, and those on a Kafka."""
        cluster = Cluster(context)
        self.exits.callback(cluster.close)
        most = max(1_000, context.size.alerts)
        self._records = [count for count in RECORDS[context.size.profile] if count <= most]
        return [
            OneRecord(context, self._records),
            AllRecords(context),
            Clients(context, CLIENTS),
            Sites(context),
            Deaths(context, cluster),
            Rebuild(context, cluster, context.size.alerts),
        ]

    def outcome(self, samples: Sequence[Sample]) -> Outcome:
        """Draw how answers grow with records and with clients."""
        records = [(float(count), f"one_of_{count}_ms", Kind.SUBJECT) for count in self._records]
        clients = [(float(count), f"clients_{count}_ms", Kind.SUBJECT) for count in CLIENTS]
        return Outcome(
            series=[
                *plot("One record", ("records", "ms"), [figure_line("nightwire", records, samples)]),
                *plot("Many clients", ("clients", "ms"), [figure_line("nightwire", clients, samples)]),
            ],
            notes=["A client's own time is part of an answer's; clients are tasks of one process."],
        )
