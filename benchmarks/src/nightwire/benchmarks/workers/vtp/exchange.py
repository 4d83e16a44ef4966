"""One exchange: authors and subscribers, each a process, with a broker between them."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from nightwire.benchmarks import Context, RunError
from nightwire.benchmarks.environment.vtp_brokers import VtpBroker
from nightwire.benchmarks.workers.client import WorkerClient, worker_process

HERE = "nightwire.benchmarks.workers.vtp"


@dataclass(frozen=True)
class ExchangeResult:
    """What came of an exchange; times in seconds, CPU time of the broker for all of it.

    Attributes:
        sent: When each event left its author, by its number.
        first: When the first subscriber had it; events that came to nobody are left out.
        last: When the last subscriber had it.
        began: When authors began.
        broker_cpu: The broker's.
        authors_cpu: The generator's.
        listeners_cpu: The subscribers'.
        naked: Events that were refused.
        unanswered: Events whose authors never had an answer.
        missing: Deliveries that did not happen, of all subscribers.
        extra: Deliveries more than once.
        run: Name of the run.
    """

    sent: Mapping[int, float]
    first: Mapping[int, float]
    last: Mapping[int, float]
    began: float
    broker_cpu: float
    authors_cpu: float
    listeners_cpu: float
    naked: int
    unanswered: int
    missing: int
    extra: int
    run: str

    @property
    def rate(self) -> float:
        """Events a second, from when authors began to the last subscriber's last event."""
        return len(self.last) / (max(self.last.values()) - self.began)

    @property
    def latencies(self) -> list[float]:
        """From leaving the author to the mean of first and last subscriber, of each event. [s]"""
        return [
            (self.first[number] + self.last[number]) / 2 - sent
            for number, sent in self.sent.items()
            if number in self.first
        ]


def exchange(
    context: Context,
    broker: VtpBroker,
    *,
    port: int | None = None,
    subscribers_port: int | None = None,
    events: int,
    subscribers: int = 1,
    **authors: Any,
) -> ExchangeResult:
    """Send *events* through *broker*, and wait until every subscriber has them.

    Args:
        context: Gives a folder and names processes.
        broker: Who runs.
        port: Where authors connect instead of to the broker itself.
        subscribers_port: Where subscribers connect instead.
        events: How many.
        subscribers: How many there are.
        authors: More of `authors.Order`.

    Raises:
        RunError: An event was lost on its way to the broker.
        ChildError: A process failed.
    """
    run = secrets.token_hex(4)
    listening = {"port": subscribers_port or broker.subscribers, "run": run, "count": events}
    sending = {"port": port or broker.authors, "run": run, "count": events, **authors}
    with (
        _worker(context, "authors", sending) as authors_worker,
        _worker(context, "subscribers", {**listening, "subscribers": subscribers}) as listeners,
    ):
        listeners.await_ready()
        authors_worker.await_ready()
        before = broker.cpu()
        sent, heard = authors_worker.findings(), listeners.findings()
        after = broker.cpu()
    if not heard["first"]:
        raise RunError("no event came out of the broker")
    return ExchangeResult(
        _numbered(sent["sent"]),
        _numbered(heard["first"]),
        _numbered(heard["last"]),
        sent["began"],
        after - before,
        sent["cpu"],
        heard["cpu"],
        sent["naked"],
        sent["unanswered"],
        heard["missing"],
        heard["extra"],
        run,
    )


def _numbered(times: Mapping[str, float]) -> dict[int, float]:
    return {int(number): at for number, at in times.items()}


@contextmanager
def relayed(context: Context, broker: VtpBroker, round_trip: float) -> Iterator[int | None]:
    """Yield the port of a relay to *broker*'s authors, *round_trip* [s] away, or None."""
    if not round_trip:
        yield None
        return
    with _worker(context, "relay", {"port": broker.authors, "round_trip": round_trip}) as relay:
        yield int(relay.receive()["port"])


def _worker(context: Context, module: str, order: Mapping[str, Any]) -> AbstractContextManager[WorkerClient]:
    return worker_process(context, f"{HERE}.{module}", order, role=module)


def greetings(context: Context, broker: VtpBroker, subscribers: int, patience: float) -> list[float]:
    """Return how long it took until each of *subscribers*, who connect at once, was greeted. [s]

    One that is not greeted within *patience* [s] is left out.
    """
    order = {
        "port": broker.subscribers,
        "run": "-",
        "count": 0,
        "subscribers": subscribers,
        "greeting": patience,
        "at_once": subscribers,
    }
    with _worker(context, "subscribers", order) as listeners:
        greeted: list[float] = listeners.receive()["greeted"]
    return greeted
