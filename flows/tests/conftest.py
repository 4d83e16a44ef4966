"""A site of one test's own: topics, a flow's name, and what became of its alerts."""

import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.tests.running import Arrivals, identities, records_in
from nightwire.core.accounting import discrepancies, read_accounts, totals
from nightwire.core.kafka import ensure_topics, headers_of
from nightwire.core.subscriptions import write_flow
from nightwire.schemas import AlertDecoder, SchemaRegistry
from nightwire.schemas.topics import DEAD_LETTERS, TopicSettings, settings


class Site:
    """Topics and a flow's name that are one test's own."""

    def __init__(self, kafka: str) -> None:
        ensure_topics(kafka, [settings(one) for one in ("flows", "directory")])
        mark = secrets.token_hex(3)
        self.kafka, self.flow = kafka, f"f{mark}"
        self.source, self.out = f"filter.ann.{mark}", f"broker.ann.{mark}"
        ensure_topics(kafka, [TopicSettings(self.source, 4), settings(self.out)])
        self.arrivals = Arrivals(kafka, self.out)

    def text(self, stones: str, *, at: str = "") -> str:
        """Return a flow that reads the source from its start."""
        source = f'[sources.sky]\ntopic = "{self.source}"\nsurvey = "sim"\nbegin = "start"\n'
        return f'name = "{self.flow}"\n{source}{place(at)}{stones}'

    def up(self, stones: str, *, at: str = "") -> int:
        """Run it; return its version."""
        return write_flow(self.kafka, self.flow, self.text(stones, at=at))

    def arrived(self) -> list[tuple[bytes, ...]]:
        """Return which alerts are in the topic that it writes."""
        return identities(self.arrivals.so_far())

    def rows(self, stage: str) -> list[tuple[int, int, int, int]]:
        """Return what a stage has read, delivered, rejected and sent to dead letters."""
        mine = [one for one in read_accounts(self.kafka) if one.stage == stage]
        assert discrepancies(mine) == []
        return [(one.read, one.delivered, one.rejected, one.dead_lettered) for one in totals(mine)]

    def rejected(self) -> Counter[str]:
        """Return what the flow has rejected, by reason."""
        mine = (one for one in read_accounts(self.kafka) if one.stage == f"flow.{self.flow}")
        return sum((Counter(one.rejected) for one in mine), Counter())

    def dead(self) -> dict[str, str]:
        """Return which records of it are in dead letters, once at least, and why."""
        letters = map(headers_of, records_in(self.kafka, DEAD_LETTERS))
        mine = [one for one in letters if self.flow in one["stage"].decode()]
        return {one["source"].decode(): one["reason"].decode() for one in mine}


@pytest.fixture
def site(kafka: str) -> Iterator[Site]:
    """Yield a site; its flow ends with the test."""
    one = Site(kafka)
    yield one
    one.arrivals.close()
    write_flow(kafka, one.flow, None)


def place(at: str) -> str:
    return f'at = "{at}"\n' if at else ""


def out(site: Site, node: str) -> str:
    """Return the terminal that writes what leaves *node*."""
    return f'[stones.out]\nkind = "topic"\nfrom = "{node}"\ntopic = "{site.out}"\n'


def hook(name: str, url: str, more: str = "") -> str:
    return f'[stones.{name}]\nkind = "webhook"\nfrom = "sky"\nurl = "{url}"\n{more}'


def decoded(site: Site, registry: str, cache: Path) -> list[dict[str, Any]]:
    """Return the events in the topic that a flow writes."""
    with SchemaRegistry(registry, cache_dir=cache) as schemas:
        decoder = AlertDecoder(schemas)
        return [decoder.decode(one.value() or b"").alert for one in records_in(site.kafka, site.out)]
