"""Stamps on demand, over HTTP: of what Kafka has, by offset, and of what the archive has, by id."""

import asyncio
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from nightwire.archive.storage import PACKETS, Store, Table
from nightwire.benchmarks import Figures, Kind, RunError
from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.environment.cluster import KafkaExperiment
from nightwire.benchmarks.environment.processes import server_process
from nightwire.benchmarks.environment.waiting import until
from nightwire.benchmarks.scenarios.directory.asking import ask, connection
from nightwire.benchmarks.workers.alerts.due_times import percentiles
from nightwire.benchmarks.workers.alerts.plain_stream import TOPIC, PlainStream
from nightwire.core.kafka import RecordFetcher
from nightwire.core.stack import free_port
from nightwire.schemas import Codec, sim_alert_schema, stamp_file, survey
from nightwire.schemas.wire import unframe

ALERTS = 500
"""Alerts of which stamps are asked for, each with an id of its own."""
CLIENTS, SECONDS = 6, 5.0
"""Who asks at the same time, each on a connection that he keeps, and how long. [s]"""
WANTED = "science.fits"
PATIENCE = 60.0
"""Longest wait until all is archived. [s]"""
SIM = survey("sim")
Choice = TypeVar("Choice")


class Stamping(KafkaExperiment):
    """Clients that ask for a stamp of an alert, any, one after the other."""

    name = "stamps"

    def prepare(self) -> None:
        """Write alerts, and serve them from Kafka and from an archive."""
        stream = PlainStream(self._context, self._cluster, ALERTS)
        stream.send([0.0] * ALERTS)
        store = Store(self._context.folder / "archive-stamps")
        self._directory = self._serve("directory")
        self._archive = self._serve(
            "archive", "--archive", store.url, "--every", "1s", "--schedule", "constant"
        )
        self._places = [((TOPIC, part), at) for part, end in stream.ends.items() for at in range(end)]
        self._ids = [SIM.view(one).id for one in make_pool(ALERTS)]
        await_archived(store, stream.ends)

    def run_once(self, kind: Kind) -> Figures:
        """Ask; return answers a second, and how long they took. [ms]"""
        if kind is Kind.BASELINE:
            return _figures("kafka", self._fetched())
        kafka = [f"/topics/{topic}/records/{part}/{at}/stamps/{WANTED}" for (topic, part), at in self._places]
        kept = [f"/sim/alerts/{one}/stamps/{WANTED}" for one in self._ids]
        found = _figures("kafka", asyncio.run(_asked(self._directory, kafka)))
        return found | _figures("archive", asyncio.run(_asked(self._archive, kept)))

    def _fetched(self) -> list[float]:
        """Return how long each stamp took that one client of Kafka had by offset. [s]"""
        fetcher, codec, found = RecordFetcher(self._cluster.bootstrap), Codec(sim_alert_schema()), []
        for place, at in _drawn(self._places):
            asked = time.perf_counter()
            alert = codec.decode(unframe(fetcher.one(place, at).value() or b"")[1])
            stamp_file(SIM.view(alert).stamps, WANTED)
            found.append(time.perf_counter() - asked)
        fetcher.close()
        return found

    def _serve(self, what: str, *words: str) -> int:
        """Return the port at which ``nightwire WHAT serve`` answers."""
        port = free_port()
        order = [what, "serve", "--bootstrap", self._cluster.bootstrap, *words, "--port", str(port)]
        self.exits.enter_context(server_process(self._context, what, *order, log=f"{what}-stamps"))
        return port


def await_archived(store: Store, ends: Mapping[int, int]) -> None:
    """Wait until *store* has all alerts before *ends*, by partition.

    Raises:
        RunError: It has not within a minute.
    """
    table = Table(store, "sim", PACKETS)
    until(
        lambda: all((table.position((TOPIC, part)) or 0) >= end for part, end in ends.items()),
        "not archived",
        patience=PATIENCE,
    )


async def _asked(port: int, addresses: Sequence[str]) -> list[float]:
    """Return how long each answer took to clients that ask for any of *addresses*. [s]"""
    found: list[float] = []

    async def client() -> None:
        async with connection(port) as (reader, writer):
            for address in _drawn(addresses):
                asked = time.perf_counter()
                body = await ask(reader, writer, f"GET {address} HTTP/1.1\r\nHost: site\r\n\r\n".encode())
                found.append(time.perf_counter() - asked)
                if not body.startswith(b"SIMPLE"):
                    raise RunError(f"{address} is no FITS file")

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    return found


def _drawn(choices: Sequence[Choice]) -> Iterator[Choice]:
    """Yield any of *choices*, for `SECONDS`."""
    chance, end = random.Random(len(choices)), time.monotonic() + SECONDS  # noqa: S311  (the same in each run)
    while time.monotonic() < end:
        yield chance.choice(choices)


def _figures(name: str, taken: Sequence[float]) -> Figures:
    return {f"{name}_stamps_per_s": len(taken) / SECONDS} | percentiles(f"{name}_stamp", taken)
