"""The parameters of a request for records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from starlette.requests import Request

from nightwire.directory.mediator.session import NO_PAID, Cursor, Paid, parse_cursor, parse_spans
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.survey_model import NUMBER_ATTRIBUTES

Format = Literal["json", "avro", "raw"]

MAX_RECORDS, MAX_BYTES, TIMEOUT = 10_000, 16 << 20, 60.0
"""Most records and bytes of a response, and the longest wait for the first. [s]"""
MAX_SLOW = 3600.0
"""Greatest ``slow=``. [s]"""
MAX_NAME = 255
"""Longest name of a group, or of a member."""


@dataclass(frozen=True)
class ReadRequest:
    """A request for records.

    Attributes:
        topic: Its name.
        group: The consumer group; Kafka keeps its offsets.
        member: Tells parallel readers of one group apart.
        format: Of the response.
        max_records: Most records of a response.
        max_bytes: A response ends when its values have so many. [byte]
        timeout: Longest wait for the first record. [s]
        stamps: Whether JSON has the fields of bytes.
        after: The acknowledged cursor.
        events: Whether the response is server-sent events.
        slow: Age above which less of each alert is sent; None where the link is not slow. [s]
        rank: The attribute by which alerts are sampled where not all can be sent.
        first: SQL condition, or a function of Python: alerts for which it is true, or greatest,
            come before others.
        paid: The acknowledged alerts among those that were owed.
    """

    topic: str
    group: str
    member: str
    format: Format
    max_records: int
    max_bytes: int
    timeout: float
    stamps: bool
    after: Cursor
    events: bool
    slow: float | None = None
    rank: str = ""
    first: str = ""
    paid: Paid = NO_PAID


DEFAULTS: Mapping[str, str] = {
    "group": "",
    "member": "",
    "as": "json",
    "max": "500",
    "bytes": str(4 << 20),
    "timeout": "30",
    "stamps": "true",
    "after": "",
    "slow": "",
    "rank": "magnitude",
    "first": "",
    "paid": "",
}
"""The query's parameters, and their defaults."""


def parse_read_request(http: Request) -> ReadRequest:
    """Return the parameters of *http*.

    Raises:
        RefusedError: 400: one is unknown or malformed; the message names it.
    """
    if unknown := http.query_params.keys() - DEFAULTS.keys():
        raise RefusedError(400, f"{', '.join(sorted(unknown))}: there are {', '.join(DEFAULTS)}")
    given = {**DEFAULTS, **http.query_params}
    for name, known in (("as", get_args(Format)), ("stamps", ("true", "false"))):
        if given[name] not in known:
            raise RefusedError(400, f"{name}={given[name][:99]}: there are {', '.join(known)}")
    if not given["group"]:
        raise RefusedError(400, "group= is missing: who reads; Kafka keeps its offsets")
    if given["rank"].removeprefix("-") not in NUMBER_ATTRIBUTES:
        there = ", ".join(NUMBER_ATTRIBUTES)
        raise RefusedError(400, f"rank={given['rank'][:99]}: there are {there}; with - the greatest first")
    events = "text/event-stream" in http.headers.get("Accept", "")
    if events and given["slow"]:
        raise RefusedError(400, "slow= goes with polls: how fast a link is is seen by the next one")
    format: Format = given["as"]  # type: ignore[assignment]  # it is one of them
    return ReadRequest(
        topic=http.path_params["topic"],
        group=_name("group", given["group"]),
        member=_name("member", given["member"]),
        format=format,
        max_records=int(_number("max", given["max"], 1, MAX_RECORDS)),
        max_bytes=int(_number("bytes", given["bytes"], 1, MAX_BYTES)),
        timeout=_number("timeout", given["timeout"], 0, TIMEOUT),
        stamps=given["stamps"] == "true",
        after=parse_cursor(http.headers.get("Last-Event-ID") or given["after"]),
        events=events,
        slow=_number("slow", given["slow"], 0.1, MAX_SLOW) if given["slow"] else None,
        rank=given["rank"],
        first=given["first"],
        paid=parse_spans(given["paid"]),
    )


def _number(name: str, text: str, least: float, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not least <= number <= most:
        raise RefusedError(400, f"{name}={text[:99]}: from {least:g} to {most:g}")
    return number


def _name(what: str, text: str) -> str:
    if len(text) > MAX_NAME or (text and not text.isprintable()):
        raise RefusedError(400, f"{what}={text[:99]!r}: at most {MAX_NAME} printable characters")
    return text
