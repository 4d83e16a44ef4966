"""Channels by multicast: they move under load, and who wants less of one topic is sent less."""

import statistics
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from nightwire.benchmarks import Figure, Figures, Kind
from nightwire.benchmarks.environment.alert_pool import make_pool
from nightwire.benchmarks.scenarios.multicast.network import FEW, OnNetwork, checked
from nightwire.core.channels import ChannelMapping
from nightwire.core.kafka import ensure_topics
from nightwire.multicast.planning import offsets_ahead, write_mappings
from nightwire.schemas import SIM_ALERT_ID, Codec, sim_alert_schema
from nightwire.schemas.topics import CHANNELS, settings
from nightwire.schemas.wire import frame

GROUPS, EVERY, LEAD = 3, 1.0, 0.5
"""A channel goes round so many groups, each so long [s], and is told so long before [s]."""
SIZE, RATE = 1_400, 2_500.0
"""Length [byte] and rate [1/s] of records."""
WANTED = 0.1
"""Share of alerts that the receiver wants which wants less."""
ALL = "TRUE"


def mapped_figures() -> Iterator[Figure]:
    """Yield the figures of these experiments."""
    moved = f"A channel moves each {EVERY:g} s, {FEW} receivers"
    yield Figure("moved_p99_ms", "ms", f"{moved}: from writing to having, 99 %", headline=True)
    yield Figure("moved_repaired", "1", f"{moved}: records fetched from Kafka for a move and receiver, mean")
    yield Figure(
        "where_share", "1", "Bytes of a receiver with --where for a tenth, over those of one for all"
    )


class Moves(OnNetwork):
    """A channel moves from group to group while it is read: none is lost, none comes twice."""

    name = "moves"

    def run_once(self, kind: Kind) -> Figures:
        """Write records, and move."""
        site, count = self._site, 2 * self._count
        topic, groups = site.topic(partitions=2), [site.group() for _ in range(GROUPS)]
        channel, over, moves = self._mapped(topic, "all", ALL, groups[0]), threading.Event(), 0
        with site.relay(topic), site.receivers(range(FEW), topic, "auto", count) as receivers:

            def move() -> None:
                nonlocal moves
                while not over.wait(EVERY):
                    moves += 1
                    since = offsets_ahead(site.bootstrap, topic, lead=LEAD)
                    write_mappings(
                        site.bootstrap, [replace(channel, group=groups[moves % GROUPS], since=since)]
                    )

            mover = threading.Thread(target=move)
            mover.start()
            site.write(topic, count, SIZE, RATE)
            over.set()
            mover.join()
            found = checked(receivers, count)
        repaired = statistics.mean(one["repaired"] for one in found) / max(1, moves)
        return {"moved_p99_ms": max(one["p99_ms"] for one in found), "moved_repaired": repaired}

    def _mapped(self, topic: str, name: str, condition: str, group: str) -> ChannelMapping:
        """Make a channel, and return it."""
        ensure_topics(self._site.bootstrap, [settings(CHANNELS)])
        made = ChannelMapping(topic, name, condition, "nightwire bench", datetime.now(UTC), group=group)
        write_mappings(self._site.bootstrap, [made])
        return made


class WantsLessByWhere(Moves):
    """One topic, one relay: a channel of all, and one of the brightest tenth, by condition."""

    name = "where"

    def run_once(self, kind: Kind) -> Figures:
        """Write alerts, and compare what reached a receiver of each channel."""
        site, lan, count, topic = self._site, self._site.lan, self._count, "alerts.sim"
        if lan is None:
            return {}
        ensure_topics(site.bootstrap, [settings(topic)])
        values, bright, least = small_alerts()
        wanted = f"diaSource.psfFlux > {least}"
        self._mapped(topic, "all", ALL, site.group())
        self._mapped(topic, "bright", wanted, site.group())
        count -= count % len(values)
        less = sum(bright) * (count // len(values))
        with (
            site.relay(topic),
            site.receivers([0], topic, "auto", less, f"{wanted} AND diaSourceId > 0") as first,
            site.receivers([1], topic, "auto", count) as second,
        ):
            before = [lan.received(host) for host in (0, 1)]
            site.write_values(topic, (values[at % len(values)] for at in range(count)), RATE)
            checked(first, less)
            checked(second, count)
            few, all_ = (lan.received(host) - was for host, was in zip((0, 1), before, strict=True))
        return {"where_share": few / all_}


def small_alerts() -> tuple[list[bytes], list[bool], float]:
    """Return alerts without stamps and history, which are bright, and from which flux on."""
    codec, pool = Codec(sim_alert_schema()), make_pool(200)
    fluxes = [alert["diaSource"]["psfFlux"] for alert in pool]
    least = sorted(fluxes)[round(len(fluxes) * (1 - WANTED)) - 1]
    bare = dict.fromkeys([one for one in pool[0] if one.startswith(("cutout", "prv"))])
    framed = [frame(SIM_ALERT_ID, codec.encode({**alert, **bare})) for alert in pool]
    small = [at for at, value in enumerate(framed) if len(value) <= SIZE]
    return [framed[at] for at in small], [fluxes[at] > least for at in small], least
