"""The owner's client of the engine: what is submitted of a file, requests and their answers."""

import os
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, KafkaException, Message, TopicPartition

from nightwire.core import kafka
from nightwire.core.cli import parse_duration
from nightwire.core.kafka import Writer, ensure_topics, watermarks
from nightwire.core.runtime import now_ms
from nightwire.filters.authoring.extract import Values, extract, likely_function
from nightwire.filters.authoring.notebook import SourceMap, code_cells, python_of, source_map
from nightwire.filters.language import NAMED, FilterError, objections
from nightwire.filters.model.transform import DECLARED, light_form
from nightwire.schemas import MendableError, SchemaError, records
from nightwire.schemas.topics import answers, requests, settings

BACKFILL = "backfill "
"""How every message about a backfill begins."""

BACKFILL_ENDED, BACKFILL_STOPPED = "backfill ended", "backfill stopped"
"""How the last message about a backfill begins."""

TIMEOUT = 60.0
"""Longest wait for an answer. [s]"""


class NoAnswerError(MendableError):
    """The engine did not answer in time; the message says what to do."""


@dataclass(frozen=True)
class Submission:
    """A filter as its owner submits it: fields of the request's record.

    Attributes:
        language: ``python`` or ``sql``.
        source: The submitted source; an SQL condition.
        entry: The filter's function; empty for SQL.
        survey: Whose alerts it judges; ``*`` for all.
        cap: Most alerts a visit; 0 for all.
        choice: Which alerts of a visit, ``first`` or ``best``.
        sources: Topics that it judges; none for the survey's alerts.
        output: The broker's topic to which passed alerts go; empty for the filter's own.
        drop: Fields that are left out of passed alerts.
        means: Fields whose mean is added to passed alerts.
        transform: The function that computes added fields; empty for none.
        backfill: Length of the past that it judges as well. [ms]
        trial: Whether it is tried on recent alerts.
        behind: What becomes of it where the slow lane cannot keep up, ``newest`` or ``suspend``.
        watchlist: The owner's catalogue ``owner/name`` that it asks for, as CSV; empty for none.
    """

    language: str
    source: str
    entry: str
    survey: str = "*"
    cap: int = 20
    choice: str = "first"
    sources: Sequence[str] = ()
    output: str = ""
    drop: Sequence[str] = ()
    means: Sequence[str] = ()
    transform: str = ""
    backfill: int = 0
    trial: bool = True
    behind: str = "newest"
    watchlist: bytes = b""

    def fields(self) -> dict[str, Any]:
        """Return the fields of the request's record."""
        lists = {name: list(getattr(self, name)) for name in ("sources", "drop", "means")}
        return asdict(self) | lists


def shaped(
    submission: Submission, survey: str, drop: Sequence[str], means: Sequence[str], *, lite: bool, **more: Any
) -> Submission:
    """Return a submission for the alerts of *survey*, which are changed as their owner wishes.

    Args:
        submission: What passes.
        survey: Whose alerts.
        drop: Fields that are left out.
        means: Fields of which a mean is added.
        lite: Whether the alerts come in their light form, too.
        more: Further fields.

    Raises:
        FilterError: They do, and are not of one survey that there is.
    """
    if lite and survey == "*":
        raise FilterError("a light form needs a survey by its name: what is left out depends on it")
    try:
        light = light_form(survey) if lite else {"drop": [], "means": []}
    except SchemaError as error:
        raise FilterError(str(error)) from error
    fields = {"drop": [*drop, *light["drop"]], "means": [*means, *light["means"]], **more}
    return replace(submission, survey=survey, **fields)


KEPT = ("language", "source", "entry", "survey", "cap", "choice", "sources", "output", "drop", "means")
"""Fields that a version of a filter has of its submission, with those of `again`."""


def again(version: Mapping[str, Any], backfill: int) -> Submission:
    """Return the submission of a version of a filter, once more, for the sake of its past.

    Args:
        version: Its record.
        backfill: Length of the past that is judged. [ms]
    """
    kept = {name: version[name] for name in (*KEPT, "transform", "behind")}
    return Submission(**kept, backfill=backfill)


def length_since(when: str, now: int) -> int:
    """Return how long ago *when* is. [ms]

    Args:
        when: A duration, such as ``1d``, or a date, perhaps with a time: UTC unless it says more.
        now: [ms since 1970, UTC]

    Raises:
        FilterError: It is none of these, or lies in the future.
    """
    try:
        if when[:1].isdecimal() and when[-1:] in "smhd":
            return round(1000 * parse_duration(when).total_seconds())
        asked = datetime.fromisoformat(when)
    except ValueError as error:
        raise FilterError(f"{when[:40]!r}: write a duration (1d, 12h) or a date (2026-11-20)") from error
    asked = asked if asked.tzinfo else asked.replace(tzinfo=UTC)
    if (length := now - round(1000 * asked.timestamp())) <= 0:
        raise FilterError(f"{when} lies in the future: a backfill begins in the past")
    return length


def sql_submission(condition: str) -> Submission:
    """Return the submission of an SQL condition."""
    return Submission("sql", condition.strip(), "")


def file_submission(
    file: Path | None, sql: str | None, entry: str | None, transform: str = "", columns: Sequence[str] = ()
) -> Submission:
    """Return the submission of a file (.ipynb, .py or .sql), or of SQL alone.

    Args:
        file: The file.
        sql: The condition, where there is no file.
        entry: The filter's function; None: ``keep``, or the only one there is.
        transform: Name of the function that computes added fields; empty for none.
        columns: Columns that are the function's arguments; none where the file says.

    Raises:
        FilterError: It is no filter; or there are both, or neither.
    """
    if (file is None) == (sql is None):
        raise FilterError("name a FILE or give a condition by --sql, one of them")
    if file is not None and file.suffix == ".sql":
        sql, file = file.read_text(), None
    if file is None:
        return replace(sql_submission(str(sql)), transform=transform)
    entry = entry or likely_function(_python_in(file), transform)
    return Submission("python", file_source(file, entry, transform, columns), entry, transform=transform)


def text_submission(
    language: str, text: str, entry: str = "", transform: str = "", columns: Sequence[str] = ()
) -> Submission:
    """Return the submission of a text, of which nothing is run here, whoever wrote it.

    Args:
        language: ``python`` or ``sql``.
        text: A whole script, or a condition.
        entry: As `file_submission` takes them.
        transform: Likewise.
        columns: Likewise.

    Raises:
        FilterError: It is no filter, or uses what only running it would make.
    """
    if language == "sql":
        return replace(sql_submission(text), transform=transform)
    try:
        entry = entry or likely_function(text, transform)
        source = python_source(text, entry, transform, columns)
        return Submission("python", source, entry, transform=transform)
    except (RecursionError, MemoryError) as error:
        raise FilterError("this text is nested too deeply") from error


def file_source(file: Path, entry: str, transform: str = "", columns: Sequence[str] = ()) -> str:
    """Return the checked source that is submitted of a notebook or script.

    Values that only running the code makes are found by running it, in a process of its own.

    Raises:
        FilterError: It is no filter.
    """
    code = _python_in(file)

    def values(names: Sequence[str]) -> Mapping[str, str]:
        # brings NumPy, rarely needed
        from nightwire.filters.authoring.constants import values_by_running

        return values_by_running(code, file.resolve().parent)(names)

    return python_source(code, entry, transform, columns, values)


def _python_in(file: Path) -> str:
    return python_of(file.read_text(), notebook=file.suffix == ".ipynb")


def python_source(
    code: str, entry: str, transform: str, columns: Sequence[str], values: Values | None = None
) -> str:
    """Return the checked source that is submitted of *code*.

    Args:
        code: A whole script.
        entry: The filter's function.
        transform: The function that computes added fields; empty for none.
        columns: Columns that the function is given; none where the script says.
        values: Finds the values that running the code makes; without it, they are refused.

    Raises:
        FilterError: It is no filter.
    """
    code = f"{code}\n{NAMED} = {[*columns]!r}\n" if columns else code
    source = extract(code, entry, values, [transform, DECLARED] if transform else [])
    if reasons := objections(source, entry):
        raise FilterError(*reasons)
    return source


def file_source_map(file: Path | None, source: str) -> SourceMap:
    """Return the owner's names of the lines of *source*, submitted of *file*; none for SQL."""
    if file is None or file.suffix == ".sql":
        return SourceMap()
    text, notebook = file.read_text(), file.suffix == ".ipynb"
    return source_map(source, python_of(text, notebook=notebook), code_cells(text) if notebook else ())


def default_owner() -> str:
    """Return the owner of filters where none is named: Kafka's user, else ``me``."""
    return kafka.speaker() or os.environ.get("KAFKA_SASL_USERNAME", "me")


def send_request(
    bootstrap: str, action: str, owner: str, name: str, *, timeout: float = TIMEOUT, **fields: Any
) -> Mapping[str, Any]:
    """Send a request to the engine and return its answer.

    Args:
        bootstrap: Kafka's address.
        action: ``submit``, ``remove``, ``enable``, ``disable``, ``rollback`` or ``stop-backfill``.
        owner: Who asks.
        name: The filter.
        timeout: Longest wait. [s]
        fields: Further fields of the request's record.

    Raises:
        NoAnswerError: None came in time.
        DeliveryError: Kafka did not take the request.
    """
    request = {
        "id": uuid.uuid4().hex, "action": action, "owner": owner, "name": name,
        "time": now_ms(), **fields,
    }  # fmt: skip
    for answer in _send(bootstrap, owner, request, timeout):
        if answer["request"] == request["id"]:
            return answer
    raise NoAnswerError(
        f"no answer within {timeout:g} s: is the filter engine running (`nightwire status`)? "
        "The request is kept, and done when the engine runs"
    )


def follow_backfill(bootstrap: str, owner: str, name: str, version: int) -> Iterator[str]:
    """Yield the engine's messages about the backfill of a filter's version, until it is over.

    Raises:
        KafkaException: We may not read the owner's answers.
    """
    consumer = kafka.consumer(bootstrap, fetch_wait_max_ms=100)
    try:
        consumer.assign([TopicPartition(answers(owner), 0, OFFSET_BEGINNING)])
        while True:
            answer = _decoded(consumer.poll(0.2))
            if answer is None or (answer["name"], answer["version"]) != (name, version):
                continue
            (text, *_) = answer["reasons"] or [""]
            if not answer["request"] and text.startswith(BACKFILL):
                yield text
                if text.startswith((BACKFILL_ENDED, BACKFILL_STOPPED)):
                    return
    finally:
        consumer.close()


def _decoded(message: Message | None) -> Mapping[str, Any] | None:
    """Return the answer in *message*; None without a message, and while Kafka starts.

    Raises:
        KafkaException: It cannot be read.
    """
    if message is None:
        return None
    error = message.error()
    if error is None:
        return records.ANSWER.decode(message.value() or b"")
    if error.code() not in kafka.STARTUP_ERRORS:
        raise KafkaException(error)
    return None


def _send(
    bootstrap: str, owner: str, request: Mapping[str, Any], timeout: float
) -> Iterator[Mapping[str, Any]]:
    """Send *request*, then yield the answers to its owner."""
    consumer = kafka.consumer(bootstrap, fetch_wait_max_ms=100)
    try:
        wanted = {requests(owner), answers(owner)}
        if missing := sorted(wanted - consumer.list_topics(timeout=TIMEOUT).topics.keys()):
            ensure_topics(bootstrap, [settings(topic) for topic in missing])
        _, end = watermarks(consumer, answers(owner), 0)
        consumer.assign([TopicPartition(answers(owner), 0, end)])
        # An idempotent client takes half a second to begin; a repeated request is known by its id.
        writer = Writer(kafka.producer(bootstrap, enable_idempotence=False, linger_ms=0))
        writer.write(requests(owner), records.REQUEST.encode(request), key=request["name"].encode())
        writer.flush()
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if (answer := _decoded(consumer.poll(0.1))) is not None:
                yield answer
    finally:
        consumer.close()
