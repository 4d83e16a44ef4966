"""What a channel costs its source, by the share of alerts that its condition rejects.

EVPath's figure 11 has the CPU time of a process that sends one channel, with a filter before it.
Beside that our own case: the topic gets everything, and the channel what its condition passes.
"""

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import Message, Producer

from nightwire.benchmarks import Context, Experiment, Figure, Figures, Kind, Published, RunError
from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.environment.waiting import until
from nightwire.benchmarks.scenarios.multicast.site import PATIENCE, SharedSite
from nightwire.core.channels import ChannelCopies, ChannelJudges, ChannelMapping
from nightwire.core.kafka import Writer, ensure_topics, producer
from nightwire.producer import AlertWriter
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema, survey
from nightwire.schemas.topics import CHANNELS, alerts, channel, settings
from nightwire.schemas.wire import frame

REJECTED = (0, 1, 3, 5, 10, 50)
"""Shares. [%]"""
RARE = 99
"""Share that the channel of those rejects who want a hundredth. [%]"""
SIZE, POOL, AT_ONCE = 1_000, 2_000, 1_024
"""Bytes of a stamp in an alert; different alerts; those that are judged at once."""
TOPIC = alerts("sim")
EVPATH = "2 M records of 1,000 bytes; with a filter no more CPU than without"


def source_figures() -> Iterator[Figure]:
    """Yield the figures of sources."""
    for share in REJECTED:
        yield Figure(
            f"sent_{share}_us", "µs", f"CPU of sending a channel alone, {share} % rejected, an alert",
            baseline="sent without being judged",
            published=Published(0.1, "EVPath breaks even below", EVPATH) if share == 10 else None,
        )  # fmt: skip
        yield Figure(
            f"copied_{share}_us", "µs", f"CPU of a source with a channel, {share} % rejected, an alert",
            baseline="each alert copied to a second topic, unjudged", headline=share in (5, 10),
        )  # fmt: skip
    yield Figure(
        "rare_share", "1", "Bytes that Kafka sends for a channel of a hundredth, over those of its topic",
        headline=True,
    )  # fmt: skip


class Schemas:
    """Knows the schema of simulated alerts, under any id."""

    known = Codec(sim_alert_schema())

    def codec(self, _schema_id: int) -> Codec:
        """Return its codec."""
        return self.known


def condition(share: int) -> str:
    """Return what rejects *share* [%] of the alerts of `sample`."""
    return f"diaSource.psfFlux >= {share}"


def mapping(share: int) -> ChannelMapping:
    """Return a channel that rejects *share*. [%]"""
    return ChannelMapping(TOPIC, f"c{share}", condition(share), "bench", datetime.now(UTC), derived=True)


def sample() -> list[dict[str, Any]]:
    """Return alerts of some kilobyte, whose fluxes are 0 to 99."""
    found = make_pool(100)
    plain = {name: None for name in found[0] if name.startswith(("cutout", "prv"))}
    made: list[dict[str, Any]] = []
    for number in range(POOL):
        one = found[number % len(found)]
        source = {**one["diaSource"], "psfFlux": float(number % 100)}
        made.append({**one, **plain, "cutoutScience": secrets.token_bytes(SIZE), "diaSource": source})
    return made


def cpu_of(work: Callable[[], None], count: int) -> float:
    """Return the CPU time of this process for each of *count*. [µs]"""
    began = time.process_time()
    work()
    return (time.process_time() - began) / count * 1e6


class OfSources(Experiment):
    """An experiment on sources.

    Args:
        context: What the harness gives.
        site: Whose Kafka is written to.
    """

    def __init__(self, context: Context, site: SharedSite) -> None:
        self._site = site
        self._count = 100_000 if context.size.profile == "full" else 20_000

    def prepare(self) -> None:
        """Make alerts and topics."""
        self._sample = sample()
        topics = [channel(TOPIC, f"c{share}") for share in (*REJECTED, RARE)]
        self._bootstrap = self._site.site.bootstrap
        ensure_topics(self._bootstrap, [settings(one) for one in (CHANNELS, TOPIC, *topics)])

    def tear_down(self) -> None:
        """Let all go."""
        self._sample = []


class SendingAlone(OfSources):
    """A source that sends one channel, and nothing else: EVPath's."""

    name = "sent"

    def run_once(self, kind: Kind) -> Figures:
        """Send what passes, or all."""
        values = [frame(SIM_ALERT_ID, Schemas.known.encode(one)) for one in self._sample]
        return {f"sent_{share}_us": self._sent(share, values, kind) for share in REJECTED}

    def _sent(self, share: int, values: Sequence[bytes], kind: Kind) -> float:
        client, judges = producer(self._bootstrap), ChannelJudges([mapping(share)], "sim", Schemas())

        def send() -> None:
            for first in range(0, self._count, AT_ONCE):
                some = [values[at % POOL] for at in range(first, min(first + AT_ONCE, self._count))]
                passed = judges.judge(some)[0] if kind is Kind.SUBJECT else range(len(some))
                for at in passed:
                    client.produce(channel(TOPIC, f"c{share}"), some[at])
                client.poll(0)
            flush(client)

        return cpu_of(send, self._count)


class CopyingBeside(OfSources):
    """A source that writes the topic, and a channel of it."""

    name = "copied"

    def run_once(self, kind: Kind) -> Figures:
        """Write with a channel, or with a copy of each alert."""
        found = {f"copied_{share}_us": self._written(share, kind) for share in REJECTED}
        if kind is Kind.SUBJECT:
            topics = channel(TOPIC, f"c{RARE}"), TOPIC
            before = [self._site.site.on_disk(topic) for topic in topics]
            self._written(RARE, kind)
            less, more = (
                self._site.site.on_disk(topic) - was for topic, was in zip(topics, before, strict=True)
            )
            found["rare_share"] = less / more
        return found

    def _written(self, share: int, kind: Kind) -> float:
        writer, copies = Writer(producer(self._bootstrap)), None
        if kind is Kind.SUBJECT:
            for one in (*REJECTED, RARE):
                value = mapping(one).encoded() if one == share else None
                writer.write(CHANNELS, value, key=mapping(one).key.encode())
            writer.flush()
            copies = ChannelCopies(self._bootstrap, TOPIC, "sim", Schemas())
            copies.start()
            await_names(copies, [f"c{share}"])
        client, other = producer(self._bootstrap), producer(self._bootstrap)

        def copy(message: Message) -> None:
            other.produce(
                channel(TOPIC, f"c{share}"), message.value(), message.key(), message.partition() or 0
            )
            other.poll(0)

        def write() -> None:
            with AlertWriter(
                client, survey("sim"), Schemas.known, SIM_ALERT_ID, channels=copies
            ) as alerts_of:
                for at in range(self._count):
                    alerts_of.write(self._sample[at % POOL], on_delivered=None if copies else copy)
            flush(other)

        return cpu_of(write, self._count)


def flush(client: Producer) -> None:
    """Wait until Kafka has all.

    Raises:
        RunError: It did not take all.
    """
    if client.flush(PATIENCE):
        raise RunError("Kafka did not take all records")


def await_names(copies: ChannelCopies, names: Sequence[str]) -> None:
    """Wait until these channels are copied.

    Raises:
        RunError: They are not.
    """
    what = f"the channels are not {', '.join(names)}"
    until(lambda: copies.names == [*names], what, patience=PATIENCE, pause=0.05)
