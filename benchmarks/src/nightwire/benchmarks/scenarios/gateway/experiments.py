"""The questions that the paper asks of a whole broker: how many, how soon, how far, to how many."""

from collections.abc import Mapping
from dataclasses import dataclass

from nightwire.benchmarks import Experiment, Figures, Kind, RunError
from nightwire.benchmarks.environment.vtp_brokers import VtpBrokers
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.scenarios.gateway.traced import read_trace
from nightwire.benchmarks.workers.vtp.exchange import ExchangeResult, exchange, greetings, relayed

WARM = 300
"""Events that warm a broker up."""


@dataclass(frozen=True)
class EventStream:
    """A stream of events.

    Attributes:
        name: Of its figures.
        events: How many.
        connections: Of authors, at once.
        window: Most unanswered events of a connection; 0: one event a connection.
        real: Whether they are real packets.
        round_trip: How far authors are. [s]
        runs: Most runs of each kind: beyond, pairs are without it.
        alone: Whether Comet cannot be asked this.
    """

    name: str
    events: int
    connections: int = 1
    window: int = 0
    real: bool = True
    round_trip: float = 0.0
    runs: int = 1
    alone: bool = False


class Rate(Experiment):
    """Events a second from authors through the broker to one subscriber."""

    def __init__(self, brokers: VtpBrokers, stream: EventStream) -> None:
        self.name = stream.name
        self._brokers, self._stream = brokers, stream
        self.at_most = {Kind.SUBJECT: stream.runs, Kind.BASELINE: 0 if stream.alone else stream.runs}

    def prepare(self) -> None:
        """Warm both brokers up."""
        for kind in Kind:
            if self.at_most[kind]:
                exchange(self._brokers.context, self._brokers.broker(kind), events=WARM, connections=4)

    def run_once(self, kind: Kind) -> Figures:
        """Send all of it.

        Raises:
            RunError: Ours lost, doubled or refused some of it.
        """
        kafka = self._brokers.cluster.cpu()
        result = self._exchange(kind)
        kafka = self._brokers.cluster.cpu() - kafka
        if kind is Kind.SUBJECT:
            self._check(result)
        return self._figures(kind, result, kafka)

    def _exchange(self, kind: Kind) -> ExchangeResult:
        stream, broker = self._stream, self._brokers.broker(kind)
        with relayed(self._brokers.context, broker, stream.round_trip) as port:
            return exchange(
                self._brokers.context,
                broker,
                port=port,
                events=stream.events,
                connections=stream.connections,
                window=stream.window,
                real=stream.real,
            )

    def _check(self, result: ExchangeResult) -> None:
        faults = {
            "lost": result.missing,
            "twice": result.extra,
            "refused": result.naked,
            "without an answer": result.unanswered,
        }
        if any(faults.values()):
            listed = ", ".join(f"{count} {fault}" for fault, count in faults.items())
            raise RunError(f"{self.name}: of {self._stream.events:,} events {listed}")

    def _figures(self, kind: Kind, result: ExchangeResult, kafka: float) -> Figures:
        each = 1e6 / self._stream.events
        found = {
            "per_second": result.rate,
            "broker_cpu_us": result.broker_cpu * each,
            "generator_cpu_us": (result.authors_cpu + result.listeners_cpu) * each,
            "lost": float(result.missing),
        }
        if kind is Kind.SUBJECT:
            found["kafka_cpu_us"] = kafka * each
        if self._stream.round_trip and self._stream.connections == 1:
            found["round_trips"] = 1 / (result.rate * self._stream.round_trip)
        return {f"{self.name}_{name}": value for name, value in found.items()}


class Latency(Experiment):
    """From leaving the author to the subscribers, one event at a time.

    Args:
        brokers: That are measured.
        subscribers: How many.
        events: How many.
        interval: Between two of them. [s]
        times: Most runs of each kind.
    """

    def __init__(
        self, brokers: VtpBrokers, subscribers: int, events: int, interval: float, times: int = 1
    ) -> None:
        self.name = f"latency_s{subscribers}"
        self._brokers, self._subscribers = brokers, subscribers
        self._events, self._interval = events, interval
        self.at_most = dict.fromkeys(Kind, times)

    def prepare(self) -> None:
        """Warm both brokers up."""
        for broker in (self._brokers.traced, self._brokers.comet):
            exchange(self._brokers.context, broker, events=WARM, connections=4)

    def run_once(self, kind: Kind) -> Figures:
        """Send an event at a time."""
        broker = self._brokers.traced if kind is Kind.SUBJECT else self._brokers.comet
        result = exchange(
            self._brokers.context,
            broker,
            events=self._events,
            subscribers=self._subscribers,
            interval=self._interval,
            real=False,
        )
        delays = [1e3 * one for one in result.latencies]
        found = {"mean_ms": sum(delays) / len(delays), "p99_ms": quantile(delays, 0.99)}
        found |= {"own_ms": found["mean_ms"], "lost": float(result.missing)}
        if kind is Kind.SUBJECT and broker.trace is not None:
            found |= stages(read_trace(broker.trace, result.run), result)
        return {f"{self.name}_{name}": value for name, value in found.items()}


def stages(trace: dict[str, dict[int, float]], result: ExchangeResult) -> Figures:
    """Return the mean time of each stage of fully stamped events, and our own part. [ms]

    *own* leaves out what Kafka takes, from the producing of an event to its coming back from the
    log.
    """
    known = set.intersection(*map(set, trace.values()), set(result.first))
    if not known or len(trace) != len(("in", "produced", "acknowledged", "fetched")):
        raise RunError("the gateway noted no time stamps")

    def mean(begin: Mapping[int, float], end: Mapping[int, float]) -> float:
        return sum(1e3 * (end[one] - begin[one]) for one in known) / len(known)

    middle = {one: (result.first[one] + result.last[one]) / 2 for one in known}
    arrive, check = mean(result.sent, trace["in"]), mean(trace["in"], trace["produced"])
    return {
        "in_to_produced_ms": check,
        "produced_to_acknowledged_ms": mean(trace["produced"], trace["acknowledged"]),
        "acknowledged_to_out_ms": mean(trace["acknowledged"], dict(result.first)),
        "own_ms": arrive + check + mean(trace["fetched"], middle),
    }


class Herd(Experiment):
    """Subscribers that all connect at the same moment, as after an outage.

    Args:
        brokers: That are measured.
        subscribers: How many.
        patience: Longest wait. [s]
        times: Most runs of each kind.
    """

    name = "herd"

    def __init__(self, brokers: VtpBrokers, subscribers: int, patience: float, times: int = 1) -> None:
        self._brokers, self._subscribers, self._patience = brokers, subscribers, patience
        self.at_most = dict.fromkeys(Kind, times)

    def prepare(self) -> None:
        """See that both brokers are there."""
        for kind in Kind:
            greetings(self._brokers.context, self._brokers.broker(kind), 10, self._patience)

    def run_once(self, kind: Kind) -> Figures:
        """Connect; return how many were greeted, at all and within a second, and the last time."""
        found = greetings(
            self._brokers.context, self._brokers.broker(kind), self._subscribers, self._patience
        )
        within = sum(one <= 1.0 for one in found)
        return {
            "herd_served": float(len(found)),
            "herd_within_a_second": float(within),
            "herd_seconds": found[-1] if found else self._patience,
        }


class Tree(Experiment):
    """Through two brokers: authors at one, the subscriber at one that has its events from it.

    Args:
        brokers: That are measured.
        events: How many.
        interval: Between two of them. [s]
        times: Most runs of each kind.
    """

    name = "tree"

    def __init__(self, brokers: VtpBrokers, events: int, interval: float, times: int = 1) -> None:
        self._brokers, self._events, self._interval = brokers, events, interval
        self.at_most = dict.fromkeys(Kind, times)

    def prepare(self) -> None:
        """Warm all four up."""
        for kind in Kind:
            self._exchange(kind, WARM, 0.0)

    def run_once(self, kind: Kind) -> Figures:
        """Send an event at a time."""
        delays = [1e3 * one for one in self._exchange(kind, self._events, self._interval).latencies]
        return {"tree_mean_ms": sum(delays) / len(delays)}

    def _exchange(self, kind: Kind, events: int, interval: float) -> ExchangeResult:
        first, second = self._brokers.broker(kind), self._brokers.second(kind)
        return exchange(
            self._brokers.context,
            first,
            subscribers_port=second.subscribers,
            events=events,
            interval=interval,
            real=False,
        )
