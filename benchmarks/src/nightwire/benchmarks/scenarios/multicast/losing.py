"""Receivers that lose datagrams, each by itself: by our relay, and by NORM, which has no Kafka.

By our relay each has to have all, once and in order.  Of NORM it is counted.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from nightwire.benchmarks import Context, Figure, Figures, Kind
from nightwire.benchmarks.scenarios.multicast.network import FEW, MANY, RATE, SIZE, OnNetwork, check_found
from nightwire.benchmarks.scenarios.multicast.site import HERE, SILENCE, SharedSite
from nightwire.benchmarks.workers import norm
from nightwire.benchmarks.workers.client import WorkerClient

LOSSES = {"0": 0.0, "01": 0.001, "1": 0.01, "5": 0.05}
"""Share of datagrams that each receiver loses by itself, by the part of a figure's name."""
NORM = "NORM (libnorm), without Kafka"


def loss_figures() -> Iterator[Figure]:
    """Yield the figures."""
    for name, share in LOSSES.items():
        lost = f"{FEW} receivers, each loses {share:.1%}"
        yield Figure(
            f"loss_{name}_egress", "1", f"{lost}: bytes sent over bytes of records", baseline=NORM,
            headline=True,
        )  # fmt: skip
        yield Figure(f"loss_{name}_p99_ms", "ms", f"{lost}: from writing to having, 99 %", baseline=NORM)
        yield Figure(f"loss_{name}_amiss", "1", f"{lost}: records missing or out of order", baseline=NORM)
    yield Figure("outsider_share", "1", "What reaches a host that joined nothing, over bytes of records")


class Loss(OnNetwork):
    """A share of datagrams is lost.

    Args:
        context: What the harness gives.
        site: Where.
        name: The part of the figures' names.
        share: How much each receiver loses.
    """

    def __init__(self, context: Context, site: SharedSite, name: str, share: float) -> None:
        super().__init__(context, site)
        self.name, self._key, self._share = f"loss-{name}", name, share
        self.at_most = {} if norm.is_there() else {Kind.BASELINE: 0}

    def run_once(self, kind: Kind) -> Figures:
        """Write records, and see what came."""
        count, site = self._count, self._site
        with self._by_norm() if kind is Kind.BASELINE else self._by_relay() as (group, receivers, write):
            site.lose(range(FEW), self._share, group)
            before = self._crossed()
            write()
            found = [client.receive() for client in receivers]
            crossed = {
                name: (after - before[name]) / (count * SIZE) for name, after in self._crossed().items()
            }
            site.lose(range(FEW), 0.0, group)
        if kind is Kind.SUBJECT:
            check_found(found, count)
        if kind is Kind.BASELINE or self._share:
            crossed.pop("outsider_share", None)
        amiss = sum(count - one["different"] + one["disordered"] for one in found) / (count * FEW)
        delays = [one["p99_ms"] for one in found if one["count"]]
        delay = {f"loss_{self._key}_p99_ms": max(delays)} if delays else {}
        return {f"loss_{self._key}_amiss": amiss, **delay, **crossed}

    def _crossed(self) -> dict[str, float]:
        """Return the bytes that we have sent, and that have reached an outsider, by figure."""
        if (lan := self._site.lan) is None:
            return {}
        return {f"loss_{self._key}_egress": lan.sent, "outsider_share": lan.received(MANY)}

    @contextmanager
    def _by_relay(self) -> Iterator[tuple[str, Sequence[WorkerClient], Callable[[], object]]]:
        """Yield a group, receivers in place, and what writes the records."""
        with self._listening(range(FEW), self._count) as (topic, group, receivers):
            yield group, receivers, lambda: self._site.write(topic, self._count, SIZE, RATE)

    @contextmanager
    def _by_norm(self) -> Iterator[tuple[str, Sequence[WorkerClient], Callable[[], object]]]:
        """Yield the same of NORM."""
        group = self._site.group()
        order = {"group": group, "count": self._count, "size": SIZE, "rate": RATE, "patience": SILENCE}
        with ExitStack() as exits:

            def worker(part: str, host: int) -> WorkerClient:
                one = exits.enter_context(self._site.worker(norm.__name__, host, {**order, "part": part}))
                one.await_ready()
                return one

            yield group, [worker("receive", host) for host in range(FEW)], lambda: worker("send", HERE)


def losses(context: Context, site: SharedSite) -> list[Loss]:
    """Return the experiments."""
    if not norm.is_there():
        context.say("no libnorm here: no NORM beside the relay (Debian: libnorm1)")
    return [Loss(context, site, name, share) for name, share in LOSSES.items()]
