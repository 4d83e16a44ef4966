"""What was asked for a filter, what was answered, and what the engine told its owner unasked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nightwire.core.kafka import read_to_end
from nightwire.schemas import DecodeError, records
from nightwire.schemas.records import Record
from nightwire.schemas.topics import answers, requests


@dataclass(frozen=True)
class Entry:
    """One line of a filter's log."""

    time: datetime
    kind: str
    text: str


def history(bootstrap: str, owner: str, name: str) -> list[Entry]:
    """Return the log of a filter, by time; as long as its topics keep records.

    Raises:
        KafkaException: Kafka does not answer.
    """
    asked = _of_filter(bootstrap, requests(owner), records.REQUEST, name)
    said = _of_filter(bootstrap, answers(owner), records.ANSWER, name)
    entries = [_asked(one) for one in asked] + [_said(one) for one in said]
    return sorted(entries, key=lambda entry: entry.time)


def _of_filter(bootstrap: str, topic: str, kind: Record, name: str) -> Iterator[Mapping[str, Any]]:
    for message in read_to_end(bootstrap, [topic]):
        try:
            record = kind.decode(message.value() or b"")
        except DecodeError:
            continue  # the engine has put it into dead-letters
        if record["name"] == name:
            yield record


def _asked(request: Mapping[str, Any]) -> Entry:
    action, text = request["action"], ""
    if action == "submit":
        cap = f"cap {request['cap']} {request['choice']}" if request["cap"] else "no cap"
        lines = request["source"].count("\n") + 1
        past = f", backfill {request['backfill'] / 3_600_000:g} h" if request["backfill"] else ""
        of = f" of {', '.join(request['sources'])}" if request["sources"] else ""
        text = f"{of} for survey {request['survey']}, {cap}, {request['language']}, {lines} lines{past}"
    elif request["version"]:
        text = f" version {request['version']}"
    return Entry(request["time"], "asked", f"{action}{text}")


def _said(answer: Mapping[str, Any]) -> Entry:
    said = "; ".join(answer["reasons"])
    if not answer["request"]:
        return Entry(answer["time"], "notice", f"version {answer['version']}: {said}")
    if not answer["accepted"]:
        return Entry(answer["time"], "refused", said)
    return Entry(answer["time"], "accepted", f"version {answer['version']}: {said}")
