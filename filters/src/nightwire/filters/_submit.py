"""The owner's side: asking the engine, and reading what there is."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition

from nightwire.core import kafka
from nightwire.core.accounts import read_accounts, totals
from nightwire.core.kafka import Writer, ensure_topics, marks, read_to_end
from nightwire.filters._extract import code_of, extract
from nightwire.filters._filterset import FilterSet
from nightwire.filters.language import FilterError, objections
from nightwire.schemas import records
from nightwire.schemas.topics import FILTERS, answers, filter_topic, requests, settings

TIMEOUT = 60.0
"""Longest wait for an answer. [s]"""


class NoAnswerError(Exception):
    """The engine did not answer in time; the message says what to do."""


@dataclass(frozen=True)
class Line:
    """One filter in the list; the counts are over all its versions and all time."""

    owner: str
    name: str
    version: int
    live: bool
    survey: str
    topic: str
    evaluated: int = 0
    passed: int = 0
    rejected: int = 0
    faulted: int = 0


def source_of(file: Path, entry: str) -> str:
    """Return what of a notebook or script travels; checked here, where its writer sees it at once.

    Raises:
        FilterError: It is no filter.
    """
    source = extract(code_of(file.read_text(), notebook=file.suffix == ".ipynb"), entry)
    if found := objections(source, entry):
        raise FilterError(*found)
    return source


def ask(
    bootstrap: str,
    action: str,
    owner: str,
    name: str,
    *,
    survey: str = "*",
    source: str = "",
    entry: str = "",
    timeout: float = TIMEOUT,
    waiting: Callable[[], None] = lambda: None,
) -> Mapping[str, Any]:
    """Send a request to the engine and return its answer.

    Args:
        bootstrap: Kafka's address.
        action: ``submit`` or ``remove``.
        owner: Who asks.
        name: The filter.
        survey: Whose alerts it judges; ``*`` for all.
        source: The filter's source.
        entry: Its function.
        timeout: Longest wait. [s]
        waiting: Called now and then.

    Raises:
        NoAnswerError: None came in time.
        DeliveryError: Kafka did not take the request.
    """
    ensure_topics(bootstrap, [settings(requests(owner)), settings(answers(owner))])
    request = {
        "id": uuid.uuid4().hex, "action": action, "owner": owner, "name": name, "survey": survey,
        "language": "python", "source": source, "entry": entry, "time": int(time.time() * 1000),
    }  # fmt: skip
    for answer in _answers(bootstrap, owner, request, timeout):
        waiting()
        if answer is not None and answer["request"] == request["id"]:
            return answer
    raise NoAnswerError(
        f"no answer within {timeout:g} s: is the filter engine running (`nightwire status`)? "
        "The request is kept, and done when the engine runs"
    )


def _answers(
    bootstrap: str, owner: str, request: Mapping[str, Any], timeout: float
) -> Iterator[Mapping[str, Any] | None]:
    """Send *request*, then yield the owner's answers, None for each moment without one."""
    consumer = kafka.consumer(bootstrap, fetch_wait_max_ms=100)
    try:
        _, end = marks(consumer, answers(owner), 0)
        consumer.assign([TopicPartition(answers(owner), 0, end)])
        writer = Writer(kafka.producer(bootstrap))
        writer.write(requests(owner), records.REQUEST.encode(request), key=request["name"].encode())
        writer.flush()
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            value = None if message is None or message.error() is not None else message.value()
            yield None if value is None else records.ANSWER.decode(value)
    finally:
        consumer.close()


def filters(bootstrap: str) -> FilterSet:
    """Return all filters that there are.

    Raises:
        KafkaException: Kafka does not answer.
    """
    found = FilterSet()
    for message in read_to_end(bootstrap, [FILTERS]):
        value = message.value()
        record = None if value is None else records.FILTER.decode(value)
        found.apply((message.key() or b"").decode(), record)
    return found


def lines(bootstrap: str) -> list[Line]:
    """Return the list of filters, with what became of the alerts that they judged.

    Raises:
        KafkaException: Kafka does not answer.
    """
    known = filters(bootstrap)
    counts = {total.stage: total for total in totals(read_accounts(bootstrap))}
    return [_line(known, owner, name, counts.get(filter_topic(owner, name))) for owner, name in known.names()]


def _line(known: FilterSet, owner: str, name: str, total: Any) -> Line:
    live = known.live_version(owner, name)
    version = live or known.newest(owner, name)
    survey = known.versions[owner, name, version]["survey"]
    line = Line(owner, name, version, bool(live), survey, filter_topic(owner, name))
    if total is None:
        return line
    counted = {
        "evaluated": total.read,
        "passed": total.delivered,
        "rejected": total.rejected,
        "faulted": total.faulted,
    }
    return Line(**{**asdict(line), **counted})
