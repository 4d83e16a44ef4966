"""The network experiments: a topic to many hosts of a LAN, by multicast and by plain consumers.

They are Eide's experiments 1 to 4, and what his system did not promise: that nothing is lost.
"""

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from threading import Timer
from typing import Any

from nightwire.benchmarks import Better, Context, Experiment, Figure, Figures, Kind, Published, RunError
from nightwire.benchmarks.scenarios.multicast.site import HERE, SharedSite, Site
from nightwire.benchmarks.workers.client import WorkerClient

FEW, MANY = 4, 12
"""Receivers."""
HOSTS = MANY + 1
"""The last one never joins a group."""
SIZE, RATE = 1_400, 2_500.0
"""Length [byte] and rate [1/s] of records, where nothing else is asked."""
OFFERED: Mapping[int, tuple[float, float]] = {
    100: (24_000.0, 9_000.0), 500: (12_000.0, 7_000.0), 1_000: (8_000.0, 5_500.0), 1_450: (5_500.0, 4_500.0)
}  # fmt: skip
"""Rate that is offered and Eide's, by the length of records [byte]: his Table 6. [1/s]"""
SMALL, LARGE = min(OFFERED), max(OFFERED)
LOCALITIES = {"lan": ("On a LAN", 0), "host": ("On one host", HERE)}
"""Where the one receiver is, by the part of a figure's name."""
EACH = 4_600.0
"""Rate of each of two sources, of records of 1,450 bytes. [1/s]"""
BURST = 0.5
"""How long nothing reaches anybody. [s]"""
PLAIN = "as many plain consumers"
EIDE = "Two Athlons of 2 GHz, 100 Mbit/s, 2003; best effort"

Found = Mapping[str, Any]


def figures_of() -> Iterator[Figure]:
    """Yield the figures of the network experiments."""
    yield Figure(
        "many_egress",
        "1",
        f"{MANY} receivers: bytes sent over bytes of records",
        baseline=PLAIN,
        headline=True,
    )
    yield Figure("many_p99_ms", "ms", f"{MANY} receivers: from writing to having, 99 %", baseline=PLAIN)
    for name, size in (("large", LARGE), ("small", SMALL)):
        yield Figure(
            f"{name}_rate", "1/s", f"Records of {size:,} bytes to {FEW} receivers", Better.HIGHER,
            headline=True, published=Published(OFFERED[size][1], "Eide et al.", EIDE),
        )  # fmt: skip
    for name, (words, _) in LOCALITIES.items():
        for size, (_, published) in OFFERED.items():
            yield Figure(
                f"{name}_{size}_rate", "1/s", f"{words}, records of {size:,} bytes to one", Better.HIGHER,
                published=Published(published, "Eide et al.", EIDE),
            )  # fmt: skip
    yield Figure(
        "less_share", "1", "Bytes of a receiver that wants a tenth, over those of one that wants all"
    )
    yield Figure(
        "two_rate", "1/s", "Two sources of 1,450 bytes at once, the slower one", Better.HIGHER,
        baseline="one of them alone", published=Published(4_500, "Eide et al.", EIDE),
    )  # fmt: skip
    yield Figure(
        "burst_s", "s", f"{MANY} receivers lose the same half second: from its end until all have all"
    )
    yield Figure("killed_s", "s", "The relay is killed with -9: until all have what was written meanwhile")


class OnNetwork(Experiment):
    """An experiment on a site.

    Args:
        context: What the harness gives.
        site: Where.
    """

    at_most: Mapping[Kind, int] = {Kind.BASELINE: 0}

    def __init__(self, context: Context, site: SharedSite) -> None:
        self._context, self._shared = context, site

    @property
    def _site(self) -> Site:
        return self._shared.site

    @property
    def _count(self) -> int:
        return 20_000 if self._context.size.profile == "full" else 5_000

    @contextmanager
    def _listening(
        self, hosts: Sequence[int], count: int, *, plain: bool = False
    ) -> Iterator[tuple[str, str, Sequence[WorkerClient]]]:
        """Yield a topic, its group, and receivers in place."""
        topic, group = self._site.topic(), self._site.group()
        with ExitStack() as exits:
            if not plain:
                exits.enter_context(self._site.relay(topic, group))
            wanted = self._site.receivers(hosts, topic, "" if plain else group, count)
            yield topic, group, exits.enter_context(wanted)


class ManyReceivers(OnNetwork):
    """Many receivers, and as many plain consumers."""

    name = "many"
    at_most: Mapping[Kind, int] = {}

    def run_once(self, kind: Kind) -> Figures:
        """Write records to them."""
        lan = self._site.lan
        with self._listening(range(MANY), self._count, plain=kind is Kind.BASELINE) as (topic, _, receivers):
            before = lan.sent if lan else 0
            self._site.write(topic, self._count, SIZE, RATE / 2)
            found = checked(receivers, self._count)
            sent = lan.sent - before if lan else 0
        figures = {"many_p99_ms": max(one["p99_ms"] for one in found)}
        return figures | ({"many_egress": sent / (self._count * SIZE)} if lan else {})


class Rate(OnNetwork):
    """As fast as it goes, to receivers on *hosts*."""

    def __init__(
        self, context: Context, site: SharedSite, name: str, size: int, hosts: Sequence[int]
    ) -> None:
        super().__init__(context, site)
        self.name, self._size, self._hosts = name, size, hosts

    def run_once(self, kind: Kind) -> Figures:
        """Write at more than is hoped for; count what arrives in time."""
        rate, _ = OFFERED[self._size]
        count = round(rate) * (5 if self._context.size.profile == "full" else 2)
        with self._listening(self._hosts, count) as (topic, _, receivers):
            began = time.time()
            self._site.write(topic, count, self._size, rate)
            found = checked(receivers, count)
        return {f"{self.name}_rate": count / (max(one["last"] for one in found) - began)}


class WantsLess(OnNetwork):
    """Two sources of ten to one: who joins the small one is sent a tenth."""

    name = "less"

    def run_once(self, kind: Kind) -> Figures:
        """Write to both, and compare what reached a receiver of each."""
        site, count, lan = self._site, self._count, self._site.lan
        if lan is None:
            return {}
        with ExitStack() as exits:
            topics = [site.topic(), site.topic()]
            clients: list[WorkerClient] = []
            for host, (topic, wanted) in enumerate(zip(topics, (count // 10, count), strict=True)):
                group = site.group()
                exits.enter_context(site.relay(topic, group))
                clients += exits.enter_context(site.receivers([host], topic, group, wanted))
            before = [lan.received(host) for host in (0, 1)]
            site.write(topics[1], count, SIZE, RATE)
            site.write(topics[0], count // 10, SIZE, RATE)
            checked(clients[:1], count // 10)
            checked(clients[1:], count)
            less, more = (lan.received(host) - was for host, was in zip((0, 1), before, strict=True))
        return {"less_share": less / more}


class TwoSources(OnNetwork):
    """Two sources at once, each with receivers of its own; and one of them alone."""

    name = "two"
    at_most: Mapping[Kind, int] = {}

    def run_once(self, kind: Kind) -> Figures:
        """Write to all at once."""
        sources = 1 if kind is Kind.BASELINE else 2
        with ExitStack() as exits, ThreadPoolExecutor(sources) as pool:
            listening = [
                exits.enter_context(self._listening([2 * at, 2 * at + 1], self._count))
                for at in range(sources)
            ]
            began = time.time()
            topics = [topic for topic, _, _ in listening]
            [*pool.map(lambda topic: self._site.write(topic, self._count, LARGE, EACH), topics)]
            found = [one for _, _, receivers in listening for one in checked(receivers, self._count)]
        return {"two_rate": self._count / (max(one["last"] for one in found) - began)}


class Burst(OnNetwork):
    """All receivers lose the same burst, and ask Kafka at once."""

    name = "burst"

    def run_once(self, kind: Kind) -> Figures:
        """Cut all off for a moment while records are written."""
        site, lost = self._site, round(BURST * RATE)
        if site.lan is None:
            return {}
        with self._listening(range(MANY), 2 * lost) as (topic, group, receivers):
            site.write(topic, lost, SIZE, RATE)
            site.lose(range(MANY), 1.0, group)
            site.write(topic, lost, SIZE, RATE)
            site.lose(range(MANY), 0.0, group)
            ended = time.time()
            found = checked(receivers, 2 * lost)
        return {"burst_s": max(0.0, max(one["last"] for one in found) - ended)}


class Killed(OnNetwork):
    """A relay is killed; there is another."""

    name = "killed"

    def run_once(self, kind: Kind) -> Figures:
        """Kill it while records are written."""
        site, topic, group = self._site, self._site.topic(), self._site.group()
        with (
            site.relay(topic, group) as first,
            site.receivers(range(FEW), topic, group, self._count) as receivers,
            site.relay(topic, group),
        ):
            Timer(0.5, first.process.send_signal, (signal.SIGKILL,)).start()
            site.write(topic, self._count, SIZE, RATE)
            ended = time.time()
            found = checked(receivers, self._count)
        return {"killed_s": max(0.0, max(one["last"] for one in found) - ended)}


def checked(receivers: Sequence[WorkerClient], count: int) -> list[Found]:
    """Return what *receivers* found.

    Raises:
        RunError: One did not get *count* records, each once and in order.
    """
    found = [client.receive() for client in receivers]
    check_found(found, count)
    return found


def check_found(found: Sequence[Found], count: int) -> None:
    """See that each receiver got *count* records, each once and in order.

    Raises:
        RunError: One did not.
    """
    for one in found:
        if (one["count"], one["different"], one["disordered"]) != (count, count, 0):
            raise RunError(f"a receiver got {one['different']} of {count} records: {one}")


def network_experiments(context: Context, site: SharedSite) -> list[Experiment]:
    """Return the experiments, in the order in which they run."""
    return [
        ManyReceivers(context, site),
        Rate(context, site, "large", LARGE, range(FEW)),
        Rate(context, site, "small", SMALL, range(FEW)),
        *(
            Rate(context, site, f"{name}_{size}", size, [host])
            for name, (_, host) in LOCALITIES.items()
            for size in OFFERED
        ),
        WantsLess(context, site),
        TwoSources(context, site),
        Burst(context, site),
        Killed(context, site),
    ]
