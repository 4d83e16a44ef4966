"""The filters, the counts of the alerts that they judged, and their logs, read from Kafka."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nightwire.core.accounting import StageTotal, read_accounts, totals
from nightwire.core.kafka import read_to_end
from nightwire.core.runtime import now_ms
from nightwire.filters.authoring.client import again, length_since
from nightwire.filters.language import FilterError, fields_read
from nightwire.filters.model.chains import unwritten_topics
from nightwire.filters.model.filter_set import FilterSet
from nightwire.filters.model.text_facts import load_facts
from nightwire.schemas import DecodeError, records
from nightwire.schemas.records import Record
from nightwire.schemas.survey_model import MATCH_MARK, MatchName
from nightwire.schemas.topics import FILTERS, answers, filter_topic, requests


@dataclass(frozen=True)
class ListedFilter:
    """A filter in the list.

    Attributes:
        record: The record of the shown version.
        live: Whether a version is live.
        state: As `filter_state` returns it.
        total: Its alerts, over all versions and all time; None before the first.
    """

    record: Mapping[str, Any]
    live: bool
    state: str
    total: StageTotal | None = None

    @property
    def key(self) -> str:
        """``owner/name``."""
        return f"{self.record['owner']}/{self.record['name']}"

    def counts(self) -> dict[str, int]:
        """Return its alerts: evaluated = passed + rejected + faulted, passed = sent + capped."""
        total = self.total or StageTotal(self.key, 0, 0, 0, 0, 0, 0)
        return {
            "evaluated": total.read, "passed": total.delivered + total.capped, "sent": total.delivered,
            "capped": total.capped, "rejected": total.rejected, "faulted": total.faulted,
        }  # fmt: skip

    def json(self) -> dict[str, Any]:
        """Return its description and counts."""
        owner, name = self.record["owner"], self.record["name"]
        return {
            "owner": owner, "name": name, "version": self.record["version"], "live": self.live,
            "survey": self.record["survey"], "topic": filter_topic(owner, name), "state": self.state,
            "cap": self.record["cap"], "choice": self.record["choice"],
            "compiled": bool(self.record["program"]), **self.counts(),
        }  # fmt: skip


def read_filters(bootstrap: str) -> FilterSet:
    """Return all filters that there are.

    Raises:
        KafkaException: Kafka does not answer.
    """
    found = FilterSet()
    for message in read_to_end(bootstrap, [FILTERS]):
        found.take(message.key(), message.value())
    return found


def past_again(bootstrap: str, owner: str, name: str, since: str) -> dict[str, Any]:
    """Return the fields of a request by which a live filter judges its past, from *since* on.

    Raises:
        FilterError: It is not live, or that is no time.
        KafkaException: Kafka does not answer.
    """
    known = read_filters(bootstrap)
    live = known.live_version(owner, name)
    if not live:
        raise FilterError(
            f"{owner} has no live filter {name}: submit it, or `nightwire filter enable {name}`"
        )
    return again(known.versions[owner, name, live], length_since(since, now_ms())).fields()


def listed_filters(bootstrap: str, owner: str | None = None) -> list[ListedFilter]:
    """Return all filters, or those of *owner*, each with counts of the alerts that it judged.

    Raises:
        KafkaException: Kafka does not answer.
    """
    known = read_filters(bootstrap)
    found = {total.stage: total for total in totals(read_accounts(bootstrap))}
    return [
        ListedFilter(
            known.versions[whose, name, shown_version(known, whose, name)],
            bool(known.live_version(whose, name)),
            filter_state(known, whose, name),
            found.get(filter_topic(whose, name)),
        )
        for whose, name in known.names()
        if owner in (None, whose)
    ]


def filter_state(known: FilterSet, owner: str, name: str) -> str:
    """Return ``live``, ``disabled``, ``suspended: …`` or ``removed``.  Pure."""
    pointer = known.pointers.get((owner, name))
    if pointer is None or not (pointer["version"] or pointer["suspended"]):
        return "removed"
    if pointer["live"]:
        return f"live{_silence(known, owner, name)}"
    return f"suspended: {pointer['suspended']}" if pointer["suspended"] else "disabled"


def _silence(known: FilterSet, owner: str, name: str) -> str:
    """Return a remark on a live filter whose sources nobody writes to; empty for others."""
    record = known.versions.get((owner, name, known.live_version(owner, name)))
    if record is None or not record["sources"]:
        return ""
    topics = unwritten_topics(record["sources"], known.live())
    return f", but no live filter writes to {' or '.join(topics)}" if topics else ""


def shown_version(known: FilterSet, owner: str, name: str) -> int:
    """Return the live version, else the last that was live, else the newest.  Pure."""
    pointer = known.pointers.get((owner, name))
    pointed = int(pointer["version"]) if pointer else 0
    return pointed or known.newest(owner, name)


def version_lines(known: FilterSet, record: Mapping[str, Any]) -> list[str]:
    """Return the description of one version of a filter, line by line.  Pure."""
    owner, name, version = (record[part] for part in ("owner", "name", "version"))
    state = filter_state(known, owner, name) if shown_version(known, owner, name) == version else "not live"
    cap = f"at most {record['cap']} alerts a visit, {record['choice']}" if record["cap"] else "no cap"
    reads = record["fields"] or (fields_read(record["source"], record["entry"]) if record["entry"] else [])
    own = [path for path in reads if not path.startswith(MATCH_MARK)]
    judged = ["judged over columns"] if record["program"] else [
        "judged row by row", *(f"  because {remark}" for remark in record["remarks"])
    ]  # fmt: skip
    return [
        f"{owner}/{name} version {version}, {state}, survey {record['survey']}, "
        f"{record['submitted']:%Y-%m-%d %H:%M} UTC",
        *([f"judges {', '.join(record['sources'])}"] if record["sources"] else []),
        f"reads {', '.join(own) or 'nothing that can be seen'}; {cap}",
        *_match_lines(record),
        *_transform_lines(record),
        *judged,
    ]


def _match_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the catalogues that a filter asks for, in the versions that it was accepted with."""
    for one in map(MatchName.parse, load_facts(record["facts"]).matches):
        yield f"asks {one.call} of version {one.version}"


def _transform_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the description of a transform; nothing of any other filter."""
    if record["drop"]:
        yield f"drops {', '.join(record['drop'])}"
    if record["means"]:
        yield f"adds means of {', '.join(record['means'])}"
    if record["transform"]:
        adds = load_facts(record["facts"]).adds
        yield f"adds {', '.join(f'{one.name} ({one.type})' for one in adds)}, by {record['transform']}"
    if record["output"]:
        yield f"writes to {record['output']}"


@dataclass(frozen=True)
class LogEntry:
    """One line of a filter's log."""

    time: datetime
    kind: str
    text: str


def filter_log(bootstrap: str, owner: str, name: str) -> list[LogEntry]:
    """Return the log of a filter, by time, as far back as its topics keep records.

    Raises:
        KafkaException: Kafka does not answer.
    """
    requested = map(_requested, _decoded(bootstrap, requests(owner), records.REQUEST, name))
    answered = map(_answered, _decoded(bootstrap, answers(owner), records.ANSWER, name))
    return sorted([*requested, *answered], key=lambda entry: entry.time)


def last_notices(bootstrap: str, owner: str) -> dict[str, LogEntry]:
    """Return the engine's last notice about each of an owner's filters, by its name.

    Raises:
        KafkaException: Kafka does not answer.
    """
    said = _decoded(bootstrap, answers(owner), records.ANSWER)
    return {one["name"]: _answered(one) for one in said if not one["request"]}


def _decoded(
    bootstrap: str, topic: str, kind: Record, name: str | None = None
) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a topic, or those of one filter."""
    for message in read_to_end(bootstrap, [topic]):
        try:
            record = kind.decode(message.value() or b"")
        except DecodeError:
            continue  # the engine has put it into dead-letters
        if name in (None, record["name"]):
            yield record


def _requested(request: Mapping[str, Any]) -> LogEntry:
    action, text = request["action"], ""
    if action == "submit":
        cap = f"cap {request['cap']} {request['choice']}" if request["cap"] else "no cap"
        lines = request["source"].count("\n") + 1
        past = f", backfill {request['backfill'] / 3_600_000:g} h" if request["backfill"] else ""
        of = f" of {', '.join(request['sources'])}" if request["sources"] else ""
        text = f"{of} for survey {request['survey']}, {cap}, {request['language']}, {lines} lines{past}"
    elif request["version"]:
        text = f" version {request['version']}"
    return LogEntry(request["time"], "asked", f"{action}{text}")


def _answered(answer: Mapping[str, Any]) -> LogEntry:
    reasons = "; ".join(answer["reasons"])
    if not answer["request"]:
        return LogEntry(answer["time"], "notice", f"version {answer['version']}: {reasons}")
    if not answer["accepted"]:
        return LogEntry(answer["time"], "refused", reasons)
    return LogEntry(answer["time"], "accepted", f"version {answer['version']}: {reasons}")
