"""Chains: filters that read derived topics, which other filters write.  Pure.

Which filter is upstream of which, and which derived topics a batch reads.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from nightwire.core.kafka import TopicPartition
from nightwire.filters.model.live_filter import LiveFilter

DERIVED_PREFIXES = ("filter.", "broker.")
"""Prefixes of derived topics, those that filters write to."""


def is_derived(topic: str) -> bool:
    """Return whether *topic* is one that filters write to."""
    return topic.startswith(DERIVED_PREFIXES)


def derived_sources(filters: Iterable[LiveFilter]) -> frozenset[str]:
    """Return the derived topics that some of *filters* read."""
    return frozenset(topic for one in filters for topic in one.sources if is_derived(topic))


def active_derived(start: Mapping[str, Any], before: Collection[str], now: Collection[str]) -> frozenset[str]:
    """Return the derived topics that the batch after the offset *start* reads.

    A filter that begins to read such a topic begins behind its first batch: until then the topic is
    passed over.

    Args:
        start: Where the batch begins.
        before: The topics that filters read until then.
        now: The topics that filters read in the batch.
    """
    return frozenset(topic for topic in now if topic in before and topic in start)


def readable_ends(ends: Mapping[TopicPartition, int], wanted: Collection[str]) -> dict[TopicPartition, int]:
    """Return the *ends* of all alert topics, and of the derived topics *wanted*."""
    return {
        partition: end
        for partition, end in ends.items()
        if partition[0] in wanted or not is_derived(partition[0])
    }


def is_drained(reached: Mapping[TopicPartition, int], read: Mapping[TopicPartition, int]) -> bool:
    """Return whether a batch up to *reached* reads all records of derived topics before it."""
    return all(reached[partition] >= end for partition, end in read.items() if is_derived(partition[0]))


def find_cycle(filters: Iterable[LiveFilter]) -> list[str]:
    """Return the filters of a cycle, each of which reads the next one's topic; or nothing."""
    known = {one.key: one for one in filters}
    writers = _writers(known.values())
    path: list[str] = []
    done: set[str] = set()

    def found(key: str) -> list[str]:
        if key in path:
            return [*path[path.index(key) :], key]
        if key in done:
            return []
        path.append(key)
        for one in _upstream(known[key], writers):
            if loop := found(one):
                return loop
        done.add(path.pop())
        return []

    return next((loop for key in known if (loop := found(key))), [])


def chain_depths(filters: Sequence[LiveFilter]) -> list[int]:
    """Return how many filters in a row an alert passes at most before it comes to each of
    *filters*.

    They are free of cycles; in one, some filter counts as the first.
    """
    if not derived_sources(filters):
        return [0] * len(filters)
    known = {one.key: one for one in filters}
    writers = _writers(filters)
    found: dict[str, int] = {}

    def depth(key: str) -> int:
        if key not in found:
            found[key] = 0  # ends a cycle, if there should be one
            if derived_sources([known[key]]):
                found[key] = 1 + max((depth(one) for one in _upstream(known[key], writers)), default=0)
        return found[key]

    return [depth(one.key) for one in filters]


def unwritten_topics(sources: Iterable[str], filters: Iterable[LiveFilter]) -> list[str]:
    """Return those of the derived topics *sources* to which no live filter writes."""
    writers = _writers(filters)
    return [topic for topic in sources if is_derived(topic) and topic not in writers]


def _writers(filters: Iterable[LiveFilter]) -> dict[str, list[str]]:
    """Return the filters that write to each topic."""
    found: dict[str, list[str]] = {}
    for one in filters:
        found.setdefault(one.topic, []).append(one.key)
    return found


def _upstream(one: LiveFilter, writers: Mapping[str, Sequence[str]]) -> list[str]:
    return [key for topic in one.sources for key in writers.get(topic, ())]
