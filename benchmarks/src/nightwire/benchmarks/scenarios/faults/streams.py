"""The streams of a run, alerts to an owner and VOEvents to a subscriber, and their accounts."""

import secrets
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nightwire.benchmarks import RunError
from nightwire.benchmarks.environment.alert_pool import FIRST_ID
from nightwire.benchmarks.environment.filter_engine import ALERTS
from nightwire.benchmarks.environment.waiting import until
from nightwire.benchmarks.scenarios.faults.environment import OWNED, FaultsEnvironment
from nightwire.benchmarks.scenarios.faults.recovery import Times, check, firsts, listed, twice
from nightwire.benchmarks.workers.arrivals import POLL, Arrivals, await_arrivals
from nightwire.benchmarks.workers.client import OWNER, WorkerClient, worker_process
from nightwire.core.accounting import Account, discrepancies, read_accounts
from nightwire.core.kafka import end_offsets_at
from nightwire.schemas.topics import VOEVENTS

HERE = "nightwire.benchmarks.scenarios.faults"
PATIENCE = 90.0
"""Longest wait for the next delivery, or account. [s]"""
LONGEST = 300.0
"""Longest time that is sent. [s]  A fault that takes longer is not worth a stream."""
EVENTS_A_SECOND = 20.0
FIRST_VISIT = 2026_0110_00000
PER_VISIT = 20
"""Alerts of a visit: as many as the cap of a filter lets through, so that none is cut off."""

ALERT, EVENT = "alerts", "events"


@dataclass(frozen=True)
class Stream:
    """What came of one stream: when each thing was due, and when it came. [s, monotonic]"""

    due: Times
    arrivals: list[tuple[str, float]]

    @property
    def arrived(self) -> dict[str, float]:
        """When each thing came first."""
        return firsts(self.arrivals)

    @property
    def twice(self) -> int:
        """Deliveries beyond the first."""
        return twice(self.arrivals)


@dataclass
class Streams:
    """Senders and readers, all of them processes; `running` begins and `stop` ends them."""

    environment: FaultsEnvironment
    run: str = ""
    first: int = 0
    visit: int = FIRST_VISIT
    _senders: dict[str, WorkerClient] = field(default_factory=dict)
    _owner: WorkerClient | None = None
    _exits: ExitStack = field(default_factory=ExitStack)
    _before: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let both streams run; nothing is left of them afterwards."""
        self.run = f"run{secrets.token_hex(4)}"
        self.first += self._most
        self.visit += self._most // PER_VISIT + 1
        self._before = totals(read_accounts(self.environment.bootstrap))
        with self._exits:
            self._start_readers()
            self._start_senders()
            yield

    def stop(self) -> dict[str, Stream]:
        """Stop sending, wait until all has come, and return what came of each stream.

        Raises:
            RunError: Something was lost, refused, or is in no account; the message names it.
        """
        streams: dict[str, Stream] = {}
        if self.environment.has_engine:
            streams[ALERT] = self._stop_alerts()
        streams[EVENT] = self._stop_events()
        self._check_accounts({name: len(stream.due) for name, stream in streams.items()})
        return streams

    def start_owner(self) -> None:
        """Start the reader of the filter's topic; one that was killed goes on where its group was.

        Raises:
            ChildError: It did not start.
        """
        mine = {"group": self.run, "first": FIRST_ID + self.first, "into": str(self._arrival_log(ALERT))}
        order = {"bootstrap": self.environment.bootstrap, "topics": [OWNED], **mine}
        self._owner = self._process(OWNER, order, "owner")
        self._owner.await_ready()

    def kill_owner(self) -> None:
        """Kill the reader of the filter's topic with -9."""
        if self._owner is not None:
            self._owner.kill()

    def _start_readers(self) -> None:
        if self.environment.has_engine:
            self.start_owner()
        gateway = self.environment.gateway
        order = {"port": gateway.subscribers, "run": self.run, "into": str(self._arrival_log(EVENT))}
        self._process(f"{HERE}.subscriber", order, "subscriber").await_ready()

    def _start_senders(self) -> None:
        most, interval = int(LONGEST * EVENTS_A_SECOND), 1 / EVENTS_A_SECOND
        author = {
            "port": self.environment.gateway.authors,
            "run": self.run,
            "count": most,
            "interval": interval,
        }
        orders = {EVENT: ("author", {**author, "real": False})}
        if self.environment.has_engine:
            orders[ALERT] = ("alert_sender", self._alerts_order())
        for name, (module, order) in orders.items():
            self._senders[name] = self._process(f"{HERE}.{module}", order, module)
        for sender in self._senders.values():
            sender.await_ready()

    @property
    def _most(self) -> int:
        """Most alerts of a run; no run has an id of another's."""
        return int(LONGEST * self.environment.context.size.rate) + 1

    def _alerts_order(self) -> dict[str, Any]:
        size = self.environment.context.size
        return {
            "bootstrap": self.environment.bootstrap,
            "topic": ALERTS,
            "pool": str(self.environment.pool),
            "rate": size.rate,
            "most": self._most,
            "first": self.first,
            "visit": self.visit,
            "per_visit": PER_VISIT,
        }

    def _stop_alerts(self) -> Stream:
        found = self._senders[ALERT].findings()
        ends = {int(part): end for part, end in found["ends"].items()}
        stream = self._complete(ALERT, found["due"])
        self._await_accounts("filters", ALERTS, ends)
        self.environment.forget(ends)
        return stream

    def _stop_events(self) -> Stream:
        found = self._senders[EVENT].findings()
        if found["unanswered"] or found["naked"]:
            raise RunError(
                f"of {len(found['due']):,} events {found['naked']} refused, {len(found['unanswered'])} never "
                f"answered: {listed(found['unanswered'])}"
            )
        return self._complete(EVENT, found["due"])

    def _complete(self, name: str, due: Times) -> Stream:
        """Wait until all that was sent has come, and return it.

        Raises:
            RunError: Nothing came for too long, and something is missing; or something came that
                nobody sent.
        """
        log = self._arrival_log(name)
        found = await_arrivals(log, lambda found: ids(found) >= due.keys(), PATIENCE)
        arrivals = [(noted.partition("\t")[0], when) for noted, when in found]
        check(name, due, ids(found))
        return Stream(due, arrivals)

    def _check_accounts(self, sent: Mapping[str, int]) -> None:
        """Raise unless the accounts prove that in = out, where Kafka is ours.

        Raises:
            RunError: They do not; the message says where.
        """
        if not self.environment.engine.own:
            return
        ends = {
            part: end for (_, part), end in end_offsets_at(self.environment.bootstrap, [VOEVENTS]).items()
        }
        self._await_accounts("gateway", VOEVENTS, ends)
        accounts = read_accounts(self.environment.bootstrap)
        after = totals(accounts)
        faults = discrepancies(accounts)
        for name, count in sent.items():
            counted = after.get(name, 0) - self._before.get(name, 0)
            if counted != count:
                faults.append(f"the accounts have {counted:,} {name}, and {count:,} were sent")
        if faults:
            raise RunError("; ".join(faults))

    def _await_accounts(self, stage: str, source: str, ends: Mapping[int, int]) -> None:
        """Wait until *stage* has accounted for all of *source* before *ends*.

        Raises:
            RunError: It has not for too long.
        """
        bootstrap = self.environment.bootstrap
        until(
            lambda: through(read_accounts(bootstrap), stage, source, ends),
            f"the accounts of {stage} are not there",
            patience=PATIENCE,
            pause=POLL,
        )

    def _process(self, module: str, order: Mapping[str, Any], role: str) -> WorkerClient:
        one = worker_process(self.environment.context, module, order, role=role)
        return self._exits.enter_context(one)

    def _arrival_log(self, name: str) -> Path:
        return self.environment.context.folder / f"{self.run}.{name}"


def ids(arrivals: Arrivals) -> set[str]:
    """Return the ids of what came; an owner notes each alert's age behind its id."""
    return {noted.partition("\t")[0] for noted, _when in arrivals}


def totals(accounts: list[Account]) -> dict[str, int]:
    """Return the alerts sent to the owner who gets all, and the events in the log."""
    sent = sum(
        one.filters[name].passed for one in accounts for name in one.filters if name == "bench/everything"
    )
    events = sum(one.delivered for one in accounts if (one.stage, one.source) == ("gateway", VOEVENTS))
    return {ALERT: sent, EVENT: events}


def through(accounts: list[Account], stage: str, source: str, ends: Mapping[int, int]) -> bool:
    """Return whether *stage* has accounted for all of *source* before *ends*, by partition."""
    last = dict.fromkeys(ends, -1)
    for one in accounts:
        if (one.stage, one.source) == (stage, source) and one.partition in last:
            last[one.partition] = max(last[one.partition], one.last)
    return all(last[part] + 1 >= end for part, end in ends.items())
