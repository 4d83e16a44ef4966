"""The scenario `directory`: its figures, and what they take."""

from collections.abc import Iterator, Mapping, Sequence

from nightwire.benchmarks import (
    Better,
    Context,
    Experiment,
    Figure,
    Needs,
    Outcome,
    Published,
    Scenario,
    Size,
)
from nightwire.benchmarks.model.drawing import figure_line, plot
from nightwire.benchmarks.model.sample import Kind, Sample
from nightwire.benchmarks.scenarios.directory.link import why_not
from nightwire.benchmarks.scenarios.directory.living import Deaths, Rebuild
from nightwire.benchmarks.scenarios.directory.mediator import MANY, TOPICS, WORKER, Link, Many, Reading
from nightwire.benchmarks.scenarios.directory.questions import MOST, AllRecords, Clients, OneRecord, Sites
from nightwire.benchmarks.workers.pool import WorkerPool

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
    yield from mediator_figures()


def mediator_figures() -> Iterator[Figure]:
    """Yield the figures of topics over HTTP."""
    reader, bare = "our AlertReader, alert by alert", "bare librdkafka"
    for what in TOPICS:
        size = "with stamps" if what == "stamps" else "without stamps"
        for name, said, baseline in (
            ("alerts", "values over HTTP, decoded by the client", reader),
            ("json", "JSON over HTTP", reader),
            ("values", "values over HTTP, not decoded", bare),
        ):
            rate = f"http_{what}_{name}_per_second"
            yield Figure(rate, "1/s", f"Alerts {size}: {said}", Better.HIGHER, baseline=baseline)
            yield Figure(
                f"http_{what}_{name}_share", "1", f"Alerts {size}: {said}, of {baseline}", Better.HIGHER,
                share_of=rate, headline=name == "alerts",
            )  # fmt: skip
    yield Figure(
        "http_many_megabytes_per_second", "MB/s",
        f"{MANY} write and {MANY} read messages of 1 MB over HTTP, read by all together", Better.HIGHER,
    )  # fmt: skip
    yield Figure(
        "http_link_share", "1", "Values over HTTP through 100 Mbit/s, share of the link", Better.HIGHER,
        headline=True,
    )  # fmt: skip


class DirectoryScenario(Scenario):
    """Questions to the directory."""

    name = "directory"
    title = "The directory: who is there, and alive"
    measures = (
        "Questions in SQL over HTTP to a directory's process, by clients that keep their connection and ask "
        "again as soon as they are answered: one record of directories that grow, all records of an answer, "
        "ever more clients, a thousand sites. On a Kafka of its own: how soon a killed process is gone, and "
        "how long a directory takes to read a long log; and topics over HTTP, by one connection beside our "
        "reader and bare librdkafka, by many at once (Kafka's heap has 512 MB), through a link of 100 Mbit/s "
        "(`tc`, between network namespaces). Clients and directory share a machine. Karapace's REST proxy "
        "would be a baseline of these; it is not installed, so it is not among them."
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
            seconds=90 + size.alerts * 1e-4 + size.pairs * (120 + size.alerts * 6e-5),
        )

    def experiments(self, context: Context) -> Sequence[Experiment]:
        """Return Tycho's experiments of its registry, and those on a Kafka."""
        workers = self.closing(WorkerPool(context, WORKER, heap="512m"))
        self._no_link = why_not()
        most = max(1_000, context.size.alerts)
        self._records = [count for count in RECORDS[context.size.profile] if count <= most]
        return [
            OneRecord(context, self._records),
            AllRecords(context),
            Clients(context, CLIENTS),
            Sites(context),
            Deaths(context, workers.cluster),
            Rebuild(context, workers.cluster, context.size.alerts),
            Reading(context, workers),
            Many(context, workers),
            *([] if self._no_link else [Link(context, workers)]),
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
            notes=[
                "A client's own time is part of an answer's; clients are tasks of one process.",
                *([f"No link of 100 Mbit/s can be had here: {self._no_link}"] if self._no_link else []),
            ],
        )
