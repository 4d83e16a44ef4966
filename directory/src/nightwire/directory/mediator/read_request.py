"""What is asked of a topic over HTTP."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from starlette.requests import Request

from nightwire.directory.mediator.session import NOTHING, Cursor, Paid, cursor, spans
from nightwire.schemas.serving import RefusedError
from nightwire.schemas.survey_model import NUMBER_ATTRIBUTES

Form = Literal["json", "avro", "raw"]

MOST, SIZE, TIMEOUT = 10_000, 16 << 20, 60.0
"""Most records and bytes of an answer, and the longest wait for the first. [s]"""
MOST_SLOW = 3600.0
"""Greatest age that a slow link may be allowed. [s]"""
MAX_NAME = 255
"""Longest name of a group, or of a member."""


@dataclass(frozen=True)
class Asked:
    """A question for records.

    Attributes:
        topic: Of which topic.
        group: In whose name: Kafka keeps the group's offsets.
        member: Tells apart those who read at once in one group.
        form: In which form.
        most: So many at most.
        size: An answer ends when it has so many bytes of values.
        timeout: Longest wait for the first. [s]
        stamps: Whether JSON holds bytes.
        after: What is acknowledged.
        events: Whether server-sent events are wanted.
        slow: Age above which less of each alert is sent; None where the link is not slow. [s]
        rank: By which attribute alerts are chosen where not all can be sent.
        first: SQL condition, or a function of Python: alerts on which it holds, or for which it
            returns the most, come before others.
        paid: Which of the alerts that followed are acknowledged.
    """

    topic: str
    group: str
    member: str
    form: Form
    most: int
    size: int
    timeout: float
    stamps: bool
    after: Cursor
    events: bool
    slow: float | None = None
    rank: str = ""
    first: str = ""
    paid: Paid = NOTHING


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
"""What may be asked for, and what is where it is not."""


def asked(http: Request) -> Asked:
    """Return what *http* asks for.

    Raises:
        RefusedError: 400: it asks for what there is not; the message names it.
    """
    if unknown := http.query_params.keys() - DEFAULTS.keys():
        raise RefusedError(400, f"{', '.join(sorted(unknown))}: there are {', '.join(DEFAULTS)}")
    said = {**DEFAULTS, **http.query_params}
    for name, known in (("as", get_args(Form)), ("stamps", ("true", "false"))):
        if said[name] not in known:
            raise RefusedError(400, f"{name}={said[name][:99]}: there are {', '.join(known)}")
    if not said["group"]:
        raise RefusedError(400, "group= is missing: who reads; Kafka keeps its offsets")
    if said["rank"].removeprefix("-") not in NUMBER_ATTRIBUTES:
        there = ", ".join(NUMBER_ATTRIBUTES)
        raise RefusedError(400, f"rank={said['rank'][:99]}: there are {there}; with - the greatest first")
    events = "text/event-stream" in http.headers.get("Accept", "")
    if events and said["slow"]:
        raise RefusedError(400, "slow= goes with polls: how fast a link is is seen by the next one")
    form: Form = said["as"]  # type: ignore[assignment]  # it is one of them
    return Asked(
        topic=http.path_params["topic"],
        group=_name("group", said["group"]),
        member=_name("member", said["member"]),
        form=form,
        most=int(_number("max", said["max"], 1, MOST)),
        size=int(_number("bytes", said["bytes"], 1, SIZE)),
        timeout=_number("timeout", said["timeout"], 0, TIMEOUT),
        stamps=said["stamps"] == "true",
        after=cursor(http.headers.get("Last-Event-ID") or said["after"]),
        events=events,
        slow=_number("slow", said["slow"], 0.1, MOST_SLOW) if said["slow"] else None,
        rank=said["rank"],
        first=said["first"],
        paid=spans(said["paid"]),
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
