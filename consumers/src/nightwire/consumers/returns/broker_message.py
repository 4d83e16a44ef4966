"""FASTDB's `BrokerMessage`, which brokers send back: checked, and joined to alerts.  Pure.

A `BrokerMessage` is the survey's alert, or enough of it to hold the alert's id, and beside it
``brokerName``, ``classifierName``, ``classifierVersion`` and ``classifications``: an array of
``classId`` and ``probability``.  Its schema is the broker's own.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nightwire.consumers.alert import ReceivedAlert, known_survey
from nightwire.schemas import surveys

NAMES = ("brokerName", "classifierName", "classifierVersion")
"""Fields that must hold a text."""

AlertId = int | str


@dataclass(frozen=True)
class Classification:
    """One class that a classifier gives an alert, and how probable it finds it [0 to 1]."""

    class_id: int
    probability: float


@dataclass(frozen=True)
class Return:
    """The classification of one alert by one classifier of a community broker.

    Attributes:
        alert_id: The survey's id of the alert.
        broker: Name of the broker, as it spells it.
        classifier: Which of its classifiers.
        version: That classifier's version.
        classifications: The classes it gives, none of them twice, as they came.
        received: The record: its place, time and fields.
    """

    alert_id: AlertId
    broker: str
    classifier: str
    version: str
    classifications: tuple[Classification, ...]
    received: ReceivedAlert = field(repr=False)

    @property
    def best(self) -> Classification:
        """The most probable class."""
        return max(self.classifications, key=lambda one: one.probability)


class ReturnError(Exception):
    """A record is no `BrokerMessage` of its topic's broker; the message says all that is wrong."""


def as_return(alert: ReceivedAlert, broker: str) -> Return:
    """Return the classification in *alert*, which was read from the topic of *broker*.

    Raises:
        ReturnError: It cannot be used.
    """
    record, alert_id = alert.alert, alert_id_of(alert)
    if faults := message_faults(record, broker, alert_id):
        raise ReturnError("; ".join(faults))
    classes = [Classification(one["classId"], float(one["probability"])) for one in record["classifications"]]
    broker_name, classifier, version = (record[name] for name in NAMES)
    return Return(alert_id or 0, broker_name, classifier, version, tuple(classes), alert)


def message_faults(record: Mapping[str, Any], broker: str, alert_id: AlertId | None) -> list[str]:
    """Return all that is wrong with *record* as a message of *broker*; empty where nothing is.

    Args:
        record: By its field names.
        broker: The broker in whose topic the record lies.
        alert_id: The id of the alert that the record is about; None where it has none.
    """
    faults = [] if alert_id is not None else ["it has no id of an alert"]
    faults += [
        f"{name} is {record.get(name)!r}, and should be a text"
        for name in NAMES
        if not _is_text(record.get(name))
    ]
    sender = record.get("brokerName")
    if _is_text(sender) and str(sender).casefold() != broker.casefold():
        faults.append(f"brokerName is {sender!r} in the topic of {broker}")
    classes = record.get("classifications")
    if not isinstance(classes, list) or not classes:
        return [*faults, "classifications is empty, or no array"]
    return [*faults, *_class_faults(classes)]


def alert_id_of(alert: ReceivedAlert) -> AlertId | None:
    """Return the id that *alert* has by its survey, else by any survey that finds one."""
    names = [alert.survey] if alert.survey else surveys()
    described = (known_survey(name) for name in names)
    found = (one.find_alert_id(alert.alert) for one in described if one is not None)
    return next((alert_id for alert_id in found if alert_id is not None), None)


def joined(
    alerts: Iterable[ReceivedAlert], returned: Iterable[Return]
) -> Iterator[tuple[ReceivedAlert, list[Return]]]:
    """Yield each of *alerts* of which something was *returned*, in their order, with all that was.

    All that was returned is held in memory, alerts are not.
    """
    by_alert: dict[AlertId, list[Return]] = defaultdict(list)
    for one in returned:
        by_alert[one.alert_id].append(one)
    for alert in alerts:
        if (alert_id := alert.alert_id) in by_alert and alert_id is not None:
            yield alert, by_alert[alert_id]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _class_faults(classes: Iterable[Any]) -> Iterator[str]:
    seen = set()
    for at, one in enumerate(classes):
        if not isinstance(one, Mapping) or not _is_integer(one.get("classId")):
            yield f"classifications[{at}] has no classId, which is a whole number"
            continue
        if not _is_probability(one.get("probability")):
            yield f"classifications[{at}].probability is {one.get('probability')!r}, and should be in 0 to 1"
        if one["classId"] in seen:
            yield f"classifications[{at}].classId {one['classId']} comes twice"
        seen.add(one["classId"])


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_probability(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and 0 <= value <= 1
