"""The demand for a topic: its rate, and its subscriptions evaluated on its newest alerts."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from confluent_kafka import TopicPartition as TopicPartitionOffset

from nightwire.core.datagrams import MTU_PAYLOAD
from nightwire.core.kafka import consumer, read_until, watermarks
from nightwire.core.runtime import now_ms
from nightwire.filters.language import FilterError, Program, compile_sql
from nightwire.filters.language.subscriptions import Matcher, NormalForm, Roots, covers, normal_form
from nightwire.filters.language.vector import columns_of, paths_read, schema_id
from nightwire.multicast.planning.plan import Demand
from nightwire.schemas import AlertDecoder, AlertTable, MendableError, survey

LEVELS = 3
"""Levels of covering conditions: roots, the roots among those that each covers, and so on."""
MOST_CONDITIONS = 500
"""Most conditions that are evaluated, the widest first."""


class NoTrafficError(MendableError):
    """A topic has no alerts to measure; the message says what to do."""


@dataclass(frozen=True)
class Traffic:
    """The traffic of a topic.

    Attributes:
        rate: Records a second.
        values: Of the newest records.
    """

    rate: float
    values: Sequence[bytes]


def traffic_of(bootstrap: str, topic: str, *, count: int, seconds: float) -> Traffic:
    """Return a topic's rate over the last *seconds*, and its newest *count* values.

    Raises:
        NoTrafficError: It has none.
        KafkaException: Kafka cannot be reached.
    """
    with consumer(bootstrap, enable_partition_eof=True) as reader:
        known = reader.list_topics(timeout=10).topics
        numbers = sorted(known[topic].partitions) if topic in known else []
        held = {number: watermarks(reader, topic, number) for number in numbers}
        since = [TopicPartitionOffset(topic, number, now_ms() - round(1000 * seconds)) for number in numbers]
        starts = reader.offsets_for_times(since, timeout=10) if since else []
        appended = sum(held[at.partition].high - at.offset for at in starts if at.offset >= 0)
        each = math.ceil(count / max(1, len(held)))
        places = {number: max(one.low, one.high - each) for number, one in held.items() if one.high > one.low}
        reader.assign([TopicPartitionOffset(topic, number, at) for number, at in places.items()])
        ends = {(topic, number): held[number].high for number in places}
        values = [one.value() for one in read_until(reader, ends)] if ends else []
    if not (there := [value for value in values if value]):
        raise NoTrafficError(f"{topic} has no alerts to judge: begin when some are there")
    return Traffic(appended / seconds, there)


def demand_of(
    traffic: Traffic, wanted: Iterable[str], channels: Iterable[str], of_survey: str, decoder: AlertDecoder,
    *, whole: bool,
) -> Demand:  # fmt: skip
    """Return the demand for a topic.

    Args:
        traffic: Of the topic.
        wanted: The conditions of its subscriptions.
        channels: The conditions of its channels.
        of_survey: Whose alerts.
        decoder: Decodes them.
        whole: Whether receivers get alerts whole, not in their lite form.
    """
    counts = Counter(wanted)
    programs = _compiled({*counts, *channels}, of_survey)
    receivers = Counter[str]()
    for condition, nearest in _narrowest_cover([one for one in counts if one in programs], programs).items():
        receivers[nearest] += counts[condition]
    judged = {one: programs[one] for one in {*receivers, *channels} if one in programs}
    forms = {one: normal_form(program) for one, program in judged.items()}
    return Demand(
        rate=traffic.rate,
        size=sum(len(one) if whole else min(len(one), MTU_PAYLOAD) for one in traffic.values)
        / len(traffic.values),
        receivers=receivers,
        shares=shares_of(judged, traffic.values, of_survey, decoder),
        covered={one: _covered_by(one, forms, receivers) for one in judged},
    )


def shares_of(
    programs: Mapping[str, Program], values: Sequence[bytes], of_survey: str, decoder: AlertDecoder
) -> dict[str, float]:
    """Return the share of the commonest schema's alerts that passes, by condition."""
    commonest = Counter(map(schema_id, values)).most_common(1)[0][0]
    same = [value for value in values if schema_id(value) == commonest]
    matcher, about = Matcher(), survey(of_survey)
    for condition, program in programs.items():
        matcher.insert(condition, program)
    found = columns_of(decoder, same, paths_read(matcher.names, same, about, decoder))
    if not (count := found.batch.num_rows):
        raise NoTrafficError(f"none of {len(values)} records is an alert of {of_survey}")
    matches = matcher.match(AlertTable(found.batch, about))
    passed = Counter(matches.known[number] for number in matches.numbers.tolist())
    return {condition: passed[condition] / count for condition in programs}


_program = lru_cache(20_000)(compile_sql)


def _compiled(conditions: Iterable[str], of_survey: str) -> dict[str, Program]:
    found = {}
    for one in conditions:
        with suppress(FilterError):  # whoever wants it gets nothing, by any way
            found[one] = _program(one, of_survey)
    return found


def _narrowest_cover(conditions: Sequence[str], programs: Mapping[str, Program]) -> dict[str, str]:
    """Return for each condition the narrowest one of the first `LEVELS` that covers it."""
    found, level = dict[str, str](), [[*conditions]]
    for _ in range(LEVELS):
        below = list[list[str]]()
        for group in level:
            tree = Roots()
            for one in group:
                tree.insert(one, programs[one])
            roots = [*tree]
            if len({*found.values()}) + len(roots) > MOST_CONDITIONS and found:
                continue  # whoever they are stays with what covers them
            for root in roots:
                covered = tree.covered_by(root)
                found |= dict.fromkeys([root, *covered], root)
                below += [covered] if covered else []
        level = below
    return found


def _covered_by(
    condition: str, forms: Mapping[str, NormalForm | None], receivers: Mapping[str, int]
) -> frozenset[str]:
    own = forms[condition]
    every = own is not None and not own.empty and not own.sets
    return frozenset(
        one
        for one in receivers
        if one == condition
        or every
        or (own is not None and (form := forms[one]) is not None and covers(own, form))
    )
