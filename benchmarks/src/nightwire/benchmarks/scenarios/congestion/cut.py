"""A night of alerts to one consumer, over a link that is cut to a tenth for a while."""

import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from nightwire.benchmarks import Context, Figures, Kind, RunError
from nightwire.benchmarks.environment.alert_pool import make_pool, ready_messages
from nightwire.benchmarks.environment.slow_link import SlowLink
from nightwire.benchmarks.model.statistics import quantile
from nightwire.benchmarks.scenarios.congestion.drop_oldest import arrivals, queue
from nightwire.benchmarks.scenarios.directory.living import Living
from nightwire.benchmarks.workers.alerts.feed import cycled
from nightwire.consumers.source import Plan, SlowLinkSource, next_offsets, position_of
from nightwire.core.congestion import FOLLOWS_HEADER, LEVEL_HEADER, LIMIT
from nightwire.core.kafka import Writer, ensure_topics, headers_of, producer
from nightwire.schemas.topics import OWED, settings

POOL = 100
"""Distinct alerts."""
BEFORE, AFTER = 10.0, 10.0
"""How long alerts come before the cut, and after it. [s]"""
WIDTH, CUT = 1.5, 0.1
"""Rate of the link in those of the stream; and what is left of it."""
SILENCE = 5.0
"""After so long nothing more comes out of a queue. [s]"""
PATIENCE = 600.0
"""Longest wait for alerts that follow. [s]"""


@dataclass
class Delivered:
    """What came.

    Attributes:
        cut: Whether the link is cut.
        ages: Of what came during the cut, but for what followed. [s]
        whole: Offsets of alerts that came whole.
        doubled: Whole alerts that came again.
        last: When the last whole one came. [s, monotonic]
    """

    cut: bool = False
    ages: list[float] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    doubled: int = 0
    last: float = 0.0

    def note(self, offset: int, written: float, headers: Mapping[str, bytes]) -> None:
        """Note an alert that was written then [s since 1970]."""
        if self.cut and FOLLOWS_HEADER not in headers:
            self.ages.append(time.time() - written)
        if LEVEL_HEADER not in headers:
            self.doubled += offset in self.whole
            self.whole.add(offset)
            self.last = time.monotonic()

    def age(self, share: float) -> float:
        """Return the quantile of `ages` at *share*. [s]

        Raises:
            RunError: Nothing came during the cut.
        """
        if not self.ages:
            raise RunError("nothing came while the link was cut: there is no age")
        return quantile(self.ages, share)


class Night:
    """Alerts at a steady rate; during it the link is cut.

    Args:
        context: Says how many alerts come during the cut, and how fast.
        bootstrap: Kafka's address.
        topic: Where they go.
        found: Is told when the link is cut.
    """

    def __init__(self, context: Context, bootstrap: str, topic: str, found: Delivered) -> None:
        self._size, self._found, self.recovered = context.size, found, 0.0
        self._ready = ready_messages(make_pool(POOL))
        self._topic, self._writer = topic, Writer(producer(bootstrap))
        self._thread = threading.Thread(target=self._pass)
        mean = sum(len(one.value) for one in self._ready) / len(self._ready)
        self.width = WIDTH * self._size.rate * mean
        self._cut_from = int(BEFORE * self._size.rate)
        self._cut_until = self._cut_from + self._size.alerts
        self.alerts = self._cut_until + int(AFTER * self._size.rate)

    def begin(self, link: SlowLink) -> None:
        """Let it begin; *link* will be cut."""
        self._link = link
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether all alerts are written."""
        return not self._thread.is_alive()

    def _pass(self) -> None:
        began = time.monotonic()
        for number, message in enumerate(cycled(self._ready, self.alerts)):
            time.sleep(max(0.0, began + number / self._size.rate - time.monotonic()))
            if number in (self._cut_from, self._cut_until):
                self._found.cut = number == self._cut_from
                self._link.rate = self.width * (CUT if self._found.cut else 1.0)
                self.recovered = time.monotonic()
            self._writer.write(self._topic, message.value, key=message.key, headers=[("survey", b"sim")])
        self._writer.flush()


class CutLink(Living):
    """Behind a directory: less of each alert, beside a consumer that gets all of it, later."""

    name = "cut"
    at_most: Mapping[Kind, int] = {}

    def prepare(self) -> None:
        """Make the topics."""
        super().prepare()
        ensure_topics(self._cluster.bootstrap, [settings(OWED)])

    def run_once(self, kind: Kind) -> Figures:
        """Read until all alerts are there whole."""
        found, kafka = Delivered(), self._cluster.bootstrap
        with self._cluster.topic("cut", partitions=1) as topic, self._directory() as (port, _):
            night = Night(self._context, kafka, topic, found)
            with SlowLink(port, night.width) as link:
                night.begin(link)
                self._read(f"http://127.0.0.1:{link.port}", topic, night, found, kind)
        if found.doubled:
            raise RunError(f"{found.doubled} alerts came whole twice")
        ages = {f"cut_age_{name}_s": found.age(share) for name, share in SHARES.items()}
        waited = max(0.0, found.last - night.recovered)
        return {**ages, "cut_delivered": len(found.ages) / self._context.size.alerts, "cut_whole_s": waited}

    def _read(self, url: str, topic: str, night: Night, found: Delivered, kind: Kind) -> None:
        slow = LIMIT if kind is Kind.SUBJECT else None
        source = SlowLinkSource(url, Plan([topic], group=f"bench.{secrets.token_hex(4)}", slow_link=slow))
        deadline = time.monotonic() + BEFORE + AFTER + self._context.size.alerts / self._context.size.rate
        while not night.over or len(found.whole) < night.alerts:
            if time.monotonic() > deadline + PATIENCE:
                raise RunError(f"{len(found.whole):,} alerts came whole of {night.alerts:,}")
            messages = source.take(500, 0.2)
            for one in messages:
                found.note(position_of(one)[1], one.timestamp()[1] / 1e3, headers_of(one))
            source.mark_done(next_offsets(messages))
        source.close()


SHARES: Mapping[str, float] = {"p50": 0.5, "p99": 0.99, "max": 1.0}


class DroppedOldest(Living):
    """Behind a queue that drops its oldest."""

    name = "drop-oldest"

    def run_once(self, kind: Kind) -> Figures:
        """Read until nothing more comes."""
        found, kafka = Delivered(), self._cluster.bootstrap
        with self._cluster.topic("drop", partitions=1) as topic, queue(kafka, topic) as port:
            night = Night(self._context, kafka, topic, found)
            with SlowLink(port, night.width) as link:
                night.begin(link)
                for offset, written in arrivals(link.port, BEFORE + SILENCE):
                    found.note(offset, written, {})
        lost = 1 - len(found.whole) / night.alerts
        return {"dropped_age_p99_s": found.age(0.99), "dropped_share": lost}
