"""What a condition leaves of records, judged before they are decoded: stamps are not touched."""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from confluent_kafka import Message

from nightwire.consumers.alert import known_survey
from nightwire.consumers.reader.batch import Batch, Unpack
from nightwire.consumers.reader.tables import survey_name
from nightwire.consumers.source import position_of
from nightwire.schemas import AlertDecoder, RegistryAwayError, SchemaRegistry, surveys
from nightwire.schemas.topics import named_survey

if TYPE_CHECKING:
    from nightwire.filters.language import Condition, Judgement

log = logging.getLogger("nightwire.consumers")

Item = TypeVar("Item")

JUDGED = 256
"""Records that are judged at once where less is asked for: 27 µs each, and 50 at 64."""

NO_SURVEY = (
    "neither a header nor the topic's name says of which survey this record is, so no condition can be "
    "judged on it: name it (survey=…, --survey NAME)"
)


def check_condition(text: str, topics: Sequence[str], of_survey: str | None) -> None:
    """Check a condition before anything is read.

    Args:
        text: What stands behind WHERE.
        topics: Names of topics.
        of_survey: The survey of all records, where it is given.

    Raises:
        ValueError: It is no condition; says where and why.
    """
    from nightwire.filters.language import FilterError, compile_sql

    named = [of_survey] if of_survey else map(named_survey, topics)
    for name in [one for one in named if known_survey(one)] or [*surveys()][:1]:
        try:
            compile_sql(text, name)
        except FilterError as error:
            raise ValueError(f"where: {'; '.join(error.reasons)}") from error


def check_fields(text: str, topics: Sequence[str], registry: SchemaRegistry) -> None:
    """Check that the surveys whose alerts are read have a condition's fields, as far as is known.

    Args:
        text: What stands behind WHERE.
        topics: Names of topics; filters may add fields to what they send on.
        registry: Knows the schemas.

    Raises:
        ValueError: No alert can have one of them; says which, and what may have been meant.
    """
    from nightwire.filters.language import missing_names

    for described in filter(None, map(known_survey, map(named_survey, topics))):
        name = described.name
        if missing := missing_names(text, name, registry.of_survey(name)):
            raise ValueError(f"where: {'; '.join(missing)}")


@dataclass(frozen=True)
class Verdict:
    """What a condition says of one record.

    Attributes:
        passed: Whether it holds.
        fault: Why it could not be judged on the alert.
        error: Why the record holds no alert that it could be judged on.
    """

    passed: bool = False
    fault: str | None = None
    error: str | None = None


PASSED, LEFT_OUT = Verdict(passed=True), Verdict()


class RecordFilter:
    """Judges records by a condition, and unpacks those that pass.

    Args:
        text: The condition: what stands behind WHERE.
        decoder: Reads messages as they were written.
        of_survey: The survey of all records, where it is given.
    """

    def __init__(self, text: str, decoder: AlertDecoder, of_survey: str | None) -> None:
        from nightwire.filters.language import Oddities

        self._text, self._decoder, self._survey = text, decoder, of_survey
        self._conditions: dict[str, Condition] = {}
        # positions and verdicts of what was judged and put back
        self._ahead: deque[tuple[Any, Verdict]] = deque()
        self._oddities = Oddities()

    def wanted(self, most: int) -> int:
        """Return how many records to take for *most* alerts: more than that are judged at once."""
        passing = (number for number, (_, verdict) in enumerate(self._ahead, 1) if verdict.passed)
        return next(islice(passing, most - 1, None), len(self._ahead)) or max(most, JUDGED)

    def passing(self, messages: Sequence[Message]) -> int:
        """Return how many of *messages* pass; their verdicts are kept for `unpacked`."""
        verdicts, _ = self._judged(messages)
        self._keep(messages, verdicts, 0)
        return sum(one.passed for one in verdicts)

    def unpacked(self, unpack: Unpack[Item], messages: Sequence[Message], most: int) -> Batch[Item]:
        """Return what *unpack* makes of those that pass.

        What lies behind the last alert that is wanted is left waiting.

        Args:
            unpack: Makes a batch of records.
            messages: Records, in order.
            most: How many alerts at most.
        """
        verdicts, away = self._judged(messages)
        passing = [at for at, one in enumerate(verdicts) if one.passed]
        end = passing[most - 1] + 1 if len(passing) >= most else len(verdicts)
        chosen = [messages[at] for at in passing[:most]]
        batch = unpack(chosen) if chosen else Batch[Item](())
        if batch.waiting:
            end = passing[len(batch.messages)]
        elif end == len(verdicts):
            batch.unavailable = away
        self._keep(messages, verdicts, end)
        return _whole(batch, messages, verdicts[:end])

    def _keep(self, messages: Sequence[Message], verdicts: Sequence[Verdict], start: int) -> None:
        """Keep the verdicts from *start* on: their records come again."""
        left = [(position_of(messages[at]), verdicts[at]) for at in range(start, len(verdicts))]
        self._ahead.extendleft(reversed(left))

    def _judged(self, messages: Sequence[Message]) -> tuple[list[Verdict], RegistryAwayError | None]:
        """Return verdicts up to the first record whose schema cannot be had now, and why not."""
        found = [self._known(one) for one in messages]
        away: dict[int, RegistryAwayError] = {}
        for name, rows in self._by_survey(messages, found).items():
            said = self._condition(name).judge([messages[at].value() or b"" for at in rows], self._decoder)
            for oddity in self._oddities.of(said, name):
                log.warning("where %s: %s", self._text, oddity)
            for number, at in enumerate(rows):
                found[at] = _verdict(messages[at], number, said)
            away |= {
                rows[number]: error
                for number, error in said.errors.items()
                if isinstance(error, RegistryAwayError)
            }
        first = min(away, default=len(messages))
        return [one or LEFT_OUT for one in found[:first]], away.get(first)

    def _by_survey(
        self, messages: Sequence[Message], found: list[Verdict | None]
    ) -> Mapping[str, Sequence[int]]:
        """Return the records still to be judged; those of no known survey get a verdict."""
        groups: dict[str, list[int]] = {}
        for at, message in enumerate(messages):
            if found[at] is None:
                name = survey_name(message, self._survey) or named_survey(str(message.topic()))
                if name is not None and known_survey(name) is not None:
                    groups.setdefault(name, []).append(at)
                else:
                    found[at] = Verdict(error=_of_no_survey(name))
        return groups

    def _known(self, message: Message) -> Verdict | None:
        """Return the verdict of a record that was put back; those before it are others'."""
        while self._ahead:
            position, verdict = self._ahead.popleft()
            if position == position_of(message):
                return verdict
        return None

    def _condition(self, name: str) -> "Condition":
        from nightwire.filters.language import Condition

        if name not in self._conditions:
            self._conditions[name] = Condition(self._text, name)
        return self._conditions[name]


def _of_no_survey(name: str | None) -> str:
    if name is None:
        return NO_SURVEY
    return f"nobody has described survey {name[:40]!r}, there are {', '.join(surveys())}"


def _verdict(message: Message, number: int, said: "Judgement") -> Verdict:
    if (error := said.errors.get(number)) is not None:
        return Verdict(
            error="the record has no value: it deletes its key" if message.value() is None else str(error)
        )
    fault = said.faults.get(number)
    return Verdict(fault=fault) if fault is not None else PASSED if number in said.passed else LEFT_OUT


def _whole(batch: Batch[Item], messages: Sequence[Message], verdicts: Sequence[Verdict]) -> Batch[Item]:
    """Return the batch with the records before, between and behind those that passed."""
    end = len(verdicts)
    bad = [(one, verdict.error) for one, verdict in zip(messages, verdicts, strict=False) if verdict.error]
    return replace(
        batch,
        messages=messages[:end],
        waiting=messages[end:],
        bad=[*bad, *batch.bad],
        filtered=sum(one is LEFT_OUT for one in verdicts),
        faulted=sum(one.fault is not None for one in verdicts),
    )
