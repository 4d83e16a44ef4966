"""A condition judged on messages: of each only the fields that it reads are decoded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nightwire.filters.language.program import Program
from nightwire.filters.language.source import FilterError
from nightwire.filters.language.sql import compile_sql
from nightwire.filters.language.vector.evaluate import Verdicts, evaluate
from nightwire.schemas import (
    AlertDecoder,
    AlertTable,
    Codec,
    Columns,
    DecodeError,
    SchemaError,
    Survey,
    survey,
    wire,
)
from nightwire.schemas.survey_model import MATCH_MARK

CONTAINED = -1
"""Stands for the id of a schema that a message brought along."""

BEYOND = "a number is too large to be computed with"


MOST_ODDITIES = 20
"""Most different oddities that are said."""


class NoColumn(Exception):  # noqa: N818 - nothing is wrong but that these fields must be read in another way
    """Some fields cannot be read as columns; *paths* are theirs."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)
        super().__init__(f"no columns of {', '.join(sorted(self.paths))}")


@dataclass(frozen=True)
class Judgement:
    """What a condition says of n messages; those that it does not name are left out by it.

    Attributes:
        passed: Indices of messages for which it holds.
        faults: By index, why it could not be judged on an alert.
        errors: By index, why a message is no alert of the survey; a RegistryAwayError where asking
            again may help.
        unknown: Fields that it reads and that no schema of these messages has.
        rank: By index, the number that a function returned for a message that passed.
    """

    passed: frozenset[int] = frozenset()
    faults: Mapping[int, str] = field(default_factory=dict)
    errors: Mapping[int, Exception] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    rank: Mapping[int, float] = field(default_factory=dict)


NO_CATALOGUES = (
    "a condition is judged where it is read, far from catalogues: have a filter ask for MATCH and IN_MOC, "
    "and subscribe to what passes it"
)


class Oddities:
    """What is odd about the alerts that conditions judge, each said once, and not without end."""

    def __init__(self) -> None:
        self._said = set[str]()

    def of(self, said: Judgement, of_survey: str) -> list[str]:
        """Return what is new: fields that no alert has, and why alerts could not be judged."""
        unknown = [f"alerts of {of_survey} have no field {path}: it is NULL" for path in sorted(said.unknown)]
        found = [one for one in dict.fromkeys([*unknown, *said.faults.values()]) if one not in self._said]
        found = found[: MOST_ODDITIES - len(self._said)]
        self._said.update(found)
        return found


class Condition:
    """A condition on the alerts of a survey, which says what a filter of the same text says.

    Args:
        text: What stands behind WHERE; or a function of Python, compiled.
        of_survey: Name of the survey.

    Raises:
        FilterError: It is no condition, or asks for catalogues; says where and why.
        SchemaError: Nobody has described that survey.
    """

    def __init__(self, text: str | Program, of_survey: str) -> None:
        self._survey = survey(of_survey)
        self._program = compile_sql(text, self._survey) if isinstance(text, str) else text
        if any(name.startswith(MATCH_MARK) for name in self._program.names):
            raise FilterError(NO_CATALOGUES)
        self._own = [name for name in self._program.names if not name.endswith("?")]

    def judge(self, values: Sequence[bytes], decoder: AlertDecoder) -> Judgement:
        """Return what it says of *values*, messages that *decoder* reads as they were written."""
        try:
            return self._judged(values, decoder) if values else Judgement()
        except NoColumn as error:
            groups = same_schemas(values)
            if len(groups) == 1:
                return self._judged(values, decoder, error.paths)
            said = [self.judge([values[row] for row in rows], decoder) for rows in groups]
            return _joined(said, groups)

    def _judged(
        self, values: Sequence[bytes], decoder: AlertDecoder, without: frozenset[str] = frozenset()
    ) -> Judgement:
        """Return what it says of *values*, of which the fields *without* columns are not read."""
        paths = paths_read(self._program.names, values, self._survey, decoder)
        found = columns_of(decoder, values, [path for path in paths if path not in without])
        errors = {**found.faults, **foreign_messages(found.batch, found.rows, self._survey.name)}
        verdicts = self._verdicts(found.batch)
        passed = {found.rows[row] for row in np.flatnonzero(verdicts.passed).tolist()}
        faults = {found.rows[row]: why for row, why in verdicts.faults.items()}
        return Judgement(
            frozenset(passed.difference(errors, faults)),
            {at: why for at, why in faults.items() if at not in errors},
            errors,
            self._unknown(found.batch),
            {
                found.rows[row]: float(verdicts.rank[row])
                for row in np.flatnonzero(~np.isnan(verdicts.rank)).tolist()
            },
        )

    def _verdicts(self, batch: Any) -> Verdicts:
        try:
            verdicts = evaluate(self._program, AlertTable(batch, self._survey))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the condition's
            return _none(batch.num_rows, range(batch.num_rows), f"{type(error).__name__}: {error}")
        beyond = _none(batch.num_rows, verdicts.needs_python.tolist(), BEYOND)
        return Verdicts(verdicts.passed, verdicts.rank, {**beyond.faults, **verdicts.faults})

    def _unknown(self, batch: Any) -> frozenset[str]:
        null = {one.name for one in batch.schema if str(one.type) == "null"}
        return frozenset(null.intersection(self._own)) if batch.num_rows else frozenset()


def _none(count: int, faulty: Iterable[int], why: str) -> Verdicts:
    """Return verdicts on *count* alerts none of which passed, some for the fault *why*."""
    return Verdicts(np.zeros(count, bool), np.full(count, np.nan), dict.fromkeys(faulty, why))


def _joined(said: Sequence[Judgement], groups: Sequence[Sequence[int]]) -> Judgement:
    """Return as one what was said of each of *groups*, of indices of messages."""
    each = [*zip(said, groups, strict=True)]
    return Judgement(
        frozenset(rows[at] for one, rows in each for at in one.passed),
        {rows[at]: why for one, rows in each for at, why in one.faults.items()},
        {rows[at]: error for one, rows in each for at, error in one.errors.items()},
        frozenset[str]().union(*(one.unknown for one in said)),
        {rows[at]: number for one, rows in each for at, number in one.rank.items()},
    )


def same_schemas(values: Sequence[bytes]) -> list[list[int]]:
    """Return the indices of messages by their schemas; each container is alone with its own."""
    groups: dict[tuple[int | None, int], list[int]] = {}
    for at, value in enumerate(values):
        number = schema_id(value)
        groups.setdefault((number, at if number == CONTAINED else 0), []).append(at)
    return [*groups.values()]


def columns_of(decoder: AlertDecoder, values: Sequence[bytes], fields: Sequence[str]) -> Columns:
    """Return the columns of *fields*; those that no schema has are null.

    Args:
        decoder: Reads the messages.
        values: Messages.
        fields: Dotted paths.

    Raises:
        NoColumn: The schemas do not agree on the types of some fields, or no column can hold them.
    """
    try:
        return decoder.columns(values, fields, missing_ok=True)
    except SchemaError as error:
        unfit = [path for path in fields if not _agree(decoder, values, path)]
        if not unfit:
            raise
        raise NoColumn(unfit) from error


def _agree(decoder: AlertDecoder, values: Sequence[bytes], path: str) -> bool:
    """Return whether the schemas of some messages agree on a field."""
    try:
        decoder.columns(values, [path], missing_ok=True)
    except SchemaError:
        return False
    return True


def paths_read(
    names: Iterable[str], values: Sequence[bytes], of_survey: Survey, decoder: AlertDecoder
) -> list[str]:
    """Return the dotted paths that programs read of a survey's alerts.

    Args:
        names: What they read: ``Program.names``.
        values: Messages: whether a record is there is told by a field that depends on the schema.
        of_survey: The survey.
        decoder: Reads them.
    """
    wanted = list(names)
    paths = AlertTable.fields(wanted, of_survey)
    if any(name.endswith("?") for name in wanted):
        for schema in schemas_of(values, decoder):
            paths += AlertTable.fields(wanted, of_survey, schema)
    return list(dict.fromkeys(paths))


def foreign_messages(batch: Any, rows: Sequence[int], name: str) -> Mapping[int, DecodeError]:
    """Return why some messages are no alerts of survey *name*, by index: they have no id.

    Args:
        batch: Columns of alerts, those of the ids among them.
        rows: Index of the message of each row.
        name: The survey.
    """
    described = survey(name)
    without_id = AlertTable(batch, described)["id"].null.nonzero()[0].tolist()
    why = f"no alert of survey {name}: no {' or '.join(described.description.ids.alert)} in it"
    return {rows[row]: DecodeError(why) for row in without_id}


def has_column(codec: Codec, path: str) -> bool:
    """Return whether a column can hold a field of the codec's schema."""
    try:
        codec.columns([], [path])
    except SchemaError:
        return False
    return True


def schemas_of(values: Iterable[bytes], decoder: AlertDecoder) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of messages, each once; of containers that of the first one."""
    firsts: dict[int, bytes] = {}
    for value in values:
        number = schema_id(value)
        if number is not None:
            firsts.setdefault(number, value)
    for value in firsts.values():
        try:
            yield decoder.decode(value).schema
        except (DecodeError, SchemaError):
            continue


def schema_id(value: bytes) -> int | None:
    """Return the id of a message's schema, or `CONTAINED`; None where it is no message at all."""
    try:
        return CONTAINED if wire.is_container(value) else wire.unframe(memoryview(value))[0]
    except DecodeError:
        return None
