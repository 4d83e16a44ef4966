"""The questions that the paper asks of a whole broker: how many, how soon, how far, to how many."""

from collections.abc import Mapping
from dataclasses import dataclass

from nightwire.benchmarks.environment.vtp_brokers import VtpBrokers
from nightwire.benchmarks.model.scenario import Experiment, RunError
from nightwire.benchmarks.model.sample import Figures, Kind
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
    """Events a second from authors through the broker to one subscriber.

    Args:
        fleet: Has the brokers.
        load: What is sent.
    """

    def __init__(self, fleet: VtpBrokers, load: EventStream) -> None:
        self.name = load.name
        self._fleet, self._load = fleet, load
        self.at_most = {Kind.SUBJECT: load.runs, Kind.BASELINE: 0 if load.alone else load.runs}

    def prepare(self) -> None:
        """Warm both brokers up."""
        for kind in Kind:
            if self.at_most[kind]:
                exchange(self._fleet.context, self._fleet.broker(kind), events=WARM, connections=4)

    def run_once(self, kind: Kind) -> Figures:
        """Send all of it.

        Raises:
            RunError: Ours lost, doubled or refused some of it.
        """
        kafka = self._fleet.cluster.cpu()
        played = self._play(kind)
        kafka = self._fleet.cluster.cpu() - kafka
        if kind is Kind.SUBJECT:
            self._check(played)
        return self._figures(kind, played, kafka)

    def _play(self, kind: Kind) -> ExchangeResult:
        load, broker = self._load, self._fleet.broker(kind)
        with relayed(self._fleet.context, broker, load.round_trip) as port:
            return exchange(
                self._fleet.context,
                broker,
                port=port,
                events=load.events,
                connections=load.connections,
                window=load.window,
                real=load.real,
            )

    def _check(self, played: ExchangeResult) -> None:
        faults = {
            "lost": played.missing,
            "twice": played.extra,
            "refused": played.naked,
            "without an answer": played.unanswered,
        }
        if any(faults.values()):
            said = ", ".join(f"{count} {fault}" for fault, count in faults.items())
            raise RunError(f"{self.name}: of {self._load.events:,} events {said}")

    def _figures(self, kind: Kind, played: ExchangeResult, kafka: float) -> Figures:
        each = 1e6 / self._load.events
        found = {
            "per_second": played.rate,
            "broker_cpu_us": played.broker_cpu * each,
            "generator_cpu_us": (played.authors_cpu + played.listeners_cpu) * each,
            "lost": float(played.missing),
        }
        if kind is Kind.SUBJECT:
            found["kafka_cpu_us"] = kafka * each
        if self._load.round_trip and self._load.connections == 1:
            found["round_trips"] = 1 / (played.rate * self._load.round_trip)
        return {f"{self.name}_{name}": value for name, value in found.items()}


class Latency(Experiment):
    """From leaving the author to the subscribers, one event at a time.

    Args:
        fleet: Has the brokers.
        subscribers: How many.
        events: How many.
        interval: Between two of them. [s]
        times: Most runs of each kind.
    """

    def __init__(
        self, fleet: VtpBrokers, subscribers: int, events: int, interval: float, times: int = 1
    ) -> None:
        self.name = f"latency_s{subscribers}"
        self._fleet, self._subscribers = fleet, subscribers
        self._events, self._interval = events, interval
        self.at_most = dict.fromkeys(Kind, times)

    def prepare(self) -> None:
        """Warm both brokers up."""
        for broker in (self._fleet.traced, self._fleet.comet):
            exchange(self._fleet.context, broker, events=WARM, connections=4)

    def run_once(self, kind: Kind) -> Figures:
        """Send an event at a time."""
        broker = self._fleet.traced if kind is Kind.SUBJECT else self._fleet.comet
        played = exchange(
            self._fleet.context,
            broker,
            events=self._events,
            subscribers=self._subscribers,
            interval=self._interval,
            real=False,
        )
        delays = [1e3 * one for one in played.latencies]
        found = {"mean_ms": sum(delays) / len(delays), "p99_ms": quantile(delays, 0.99)}
        found |= {"own_ms": found["mean_ms"], "lost": float(played.missing)}
        if kind is Kind.SUBJECT and broker.trace is not None:
            found |= stages(read_trace(broker.trace, played.run), played)
        return {f"{self.name}_{name}": value for name, value in found.items()}


def stages(trace: dict[str, dict[int, float]], played: ExchangeResult) -> Figures:
    """Return the mean time of each stage of the events that have all stamps, and what of it is our own. [ms]

    *own* leaves out what Kafka takes, from the producing of an event to its coming back from the log.
    """
    known = set.intersection(*map(set, trace.values()), set(played.first))
    if not known or len(trace) != len(("in", "produced", "acknowledged", "fetched")):
        raise RunError("the gateway noted no time stamps")

    def mean(begin: Mapping[int, float], end: Mapping[int, float]) -> float:
        return sum(1e3 * (end[one] - begin[one]) for one in known) / len(known)

    middle = {one: (played.first[one] + played.last[one]) / 2 for one in known}
    arrive, check = mean(played.sent, trace["in"]), mean(trace["in"], trace["produced"])
    return {
        "in_to_produced_ms": check,
        "produced_to_acknowledged_ms": mean(trace["produced"], trace["acknowledged"]),
        "acknowledged_to_out_ms": mean(trace["acknowledged"], dict(played.first)),
        "own_ms": arrive + check + mean(trace["fetched"], middle),
    }


class Herd(Experiment):
    """Subscribers that all connect at the same moment, as after an outage.

    Args:
        fleet: Has the brokers.
        subscribers: How many.
        patience: Longest wait. [s]
        times: Most runs of each kind.
    """

    name = "herd"

    def __init__(self, fleet: VtpBrokers, subscribers: int, patience: float, times: int = 1) -> None:
        self._fleet, self._subscribers, self._patience = fleet, subscribers, patience
        self.at_most = dict.fromkeys(Kind, times)

    def prepare(self) -> None:
        """See that both brokers are there."""
        for kind in Kind:
            greetings(self._fleet.context, self._fleet.broker(kind), 10, self._patience)

    def run_once(self, kind: Kind) -> Figures:
        """Connect; return how many were greeted, how many within a second, and when the last was."""
        found = greetings(self._fleet.context, self._fleet.broker(kind), self._subscribers, self._patience)
        within = sum(one <= 1.0 for one in found)
        return {
            "herd_served": float(len(found)),
            "herd_within_a_second": float(within),
            "herd_seconds": found[-1] if found else self._patience,
        }


class Tree(Experiment):
    """Through two brokers: authors at one, the subscriber at one that has its events from it.

    Args:
        fleet: Has the brokers.
        events: How many.
        interval: Between two of them. [s]
        times: Most runs of each kind.
    """

    name = "tree"

    def __init__(self, fleet: VtpBrokers, events: int, interval: float, times: int = 1) -> None:
        self._fleet, self._events, self._interval = fleet, events, interval
        self.at_most = dict.fromkeys(Kind, times)

    def prepare(self) -> None:
        """Warm all four up."""
        for kind in Kind:
            self._play(kind, WARM, 0.0)

    def run_once(self, kind: Kind) -> Figures:
        """Send an event at a time."""
        delays = [1e3 * one for one in self._play(kind, self._events, self._interval).latencies]
        return {"tree_mean_ms": sum(delays) / len(delays)}

    def _play(self, kind: Kind, events: int, interval: float) -> ExchangeResult:
        first, second = self._fleet.broker(kind), self._fleet.second(kind)
        return exchange(
            self._fleet.context,
            first,
            subscribers_port=second.subscribers,
            events=events,
            interval=interval,
            real=False,
        )
