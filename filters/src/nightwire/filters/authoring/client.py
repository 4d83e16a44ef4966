"""The owner's side: what travels of a file, and asking the engine."""

import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException, Message, TopicPartition

from nightwire.core import kafka
from nightwire.core.kafka import Writer, ensure_topics, watermarks
from nightwire.core.runtime import now_ms
from nightwire.filters.authoring.extract import extract
from nightwire.filters.authoring.notebook import SourceMap, code_cells, python_of, source_map
from nightwire.filters.language import FilterError, objections
from nightwire.filters.model.transform import DECLARED
from nightwire.schemas import records
from nightwire.schemas.topics import answers, requests, settings

BACKFILL = "backfill "
"""How that begins what the engine tells of a backfill; and"""

ENDED, STOPPED = "backfill ended", "backfill stopped"
"""when it is over."""

TIMEOUT = 60.0
"""Longest wait for an answer. [s]"""


class NoAnswerError(Exception):
    """The engine did not answer in time; the message says what to do."""


def file_source(file: Path, entry: str, transform: str = "") -> str:
    """Return what of a notebook or script travels; checked here, where its writer sees it at once.

    A value that the filter uses and that only running the code tells is found by running what makes it, in
    a process of its own.

    Raises:
        FilterError: It is no filter.
    """
    code = python_of(file.read_text(), notebook=file.suffix == ".ipynb")

    def found(names: Sequence[str]) -> Mapping[str, str]:
        from nightwire.filters.authoring.constants import (
            values_by_running,  # brings NumPy, which few filters need here
        )

        return values_by_running(code, file.resolve().parent)(names)

    return checked(extract(code, entry, found, transform_names(transform)), entry)


def transform_names(transform: str) -> list[str]:
    """Return what travels beside a filter for its *transform*, by the name of that; empty for none."""
    return [transform, DECLARED] if transform else []


def submission(file: Path | None, sql: str | None, entry: str, transform: str = "") -> dict[str, str]:
    """Return language, source and entry of what is submitted: a file (.ipynb, .py or .sql), or SQL alone.

    Args:
        file: The file.
        sql: The condition, where there is no file.
        entry: The filter's function.
        transform: Name of its function that computes what is added; empty for none.

    Raises:
        FilterError: It is no filter; or there are both, or neither.
    """
    if (file is None) == (sql is None):
        raise FilterError("name a FILE or give a condition by --sql, one of them")
    if file is not None and file.suffix == ".sql":
        sql, file = file.read_text(), None
    if file is None:
        return {"language": "sql", "source": str(sql).strip(), "entry": ""}
    return {"language": "python", "source": file_source(file, entry, transform), "entry": entry}


def file_source_map(file: Path | None, source: str) -> SourceMap:
    """Return where the lines of *source*, which travels of *file*, stand in it; nothing known of SQL."""
    if file is None or file.suffix == ".sql":
        return SourceMap()
    text, notebook = file.read_text(), file.suffix == ".ipynb"
    return source_map(source, python_of(text, notebook=notebook), code_cells(text) if notebook else ())


def checked(source: str, entry: str) -> str:
    """Return *source*.

    Raises:
        FilterError: It is no filter whose function is *entry*.
    """
    if found := objections(source, entry):
        raise FilterError(*found)
    return source


def default_owner() -> str:
    """Return whose filters these are where nothing else is said: Kafka's user, else ``me``."""
    return os.environ.get("KAFKA_SASL_USERNAME", "me")


def send_request(
    bootstrap: str, action: str, owner: str, name: str, *, timeout: float = TIMEOUT, **about: Any
) -> Mapping[str, Any]:
    """Send a request to the engine and return its answer.

    Args:
        bootstrap: Kafka's address.
        action: ``submit``, ``remove``, ``enable``, ``disable`` or ``rollback``.
        owner: Who asks.
        name: The filter.
        timeout: Longest wait. [s]
        about: Further fields of the request's record.

    Raises:
        NoAnswerError: None came in time.
        DeliveryError: Kafka did not take the request.
    """
    request = {
        "id": uuid.uuid4().hex, "action": action, "owner": owner, "name": name,
        "time": now_ms(), **about,
    }  # fmt: skip
    for answer in _answers(bootstrap, owner, request, timeout):
        if answer["request"] == request["id"]:
            return answer
    raise NoAnswerError(
        f"no answer within {timeout:g} s: is the filter engine running (`nightwire status`)? "
        "The request is kept, and done when the engine runs"
    )


def follow_backfill(bootstrap: str, owner: str, name: str, version: int) -> Iterator[str]:
    """Yield what the engine tells of the backfill of a filter's version, until it is over.

    Raises:
        KafkaException: We may not read the owner's answers.
    """
    consumer = kafka.consumer(bootstrap, fetch_wait_max_ms=100)
    try:
        consumer.assign([TopicPartition(answers(owner), 0, OFFSET_BEGINNING)])
        while True:
            message = consumer.poll(0.2)
            answer = None if message is None else _answer(message)
            if answer is None or (answer["name"], answer["version"]) != (name, version):
                continue
            (text, *_) = answer["reasons"] or [""]
            if not answer["request"] and text.startswith(BACKFILL):
                yield text
                if text.startswith((ENDED, STOPPED)):
                    return
    finally:
        consumer.close()


def _answer(message: Message) -> Mapping[str, Any] | None:
    """Return the answer in *message*; None where Kafka is away for a moment.

    Raises:
        KafkaException: It cannot be read.
    """
    error = message.error()
    if error is None:
        return records.ANSWER.decode(message.value() or b"")
    if error.code() not in kafka.STARTUP_ERRORS:
        raise KafkaException(error)
    return None


def _answers(
    bootstrap: str, owner: str, request: Mapping[str, Any], timeout: float
) -> Iterator[Mapping[str, Any]]:
    """Send *request*, then yield what comes in the owner's answers."""
    consumer = kafka.consumer(bootstrap, fetch_wait_max_ms=100)
    try:
        wanted = {requests(owner), answers(owner)}
        if missing := sorted(wanted - consumer.list_topics(timeout=TIMEOUT).topics.keys()):
            ensure_topics(bootstrap, [settings(topic) for topic in missing])
        _, end = watermarks(consumer, answers(owner), 0)
        consumer.assign([TopicPartition(answers(owner), 0, end)])
        # An idempotent client takes half a second to begin; a request that comes twice is known by its id.
        writer = Writer(kafka.producer(bootstrap, enable_idempotence=False, linger_ms=0))
        writer.write(requests(owner), records.REQUEST.encode(request), key=request["name"].encode())
        writer.flush()
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            message = consumer.poll(0.1)
            answer = None if message is None else _answer(message)
            if answer is not None:
                yield answer
    finally:
        consumer.close()
