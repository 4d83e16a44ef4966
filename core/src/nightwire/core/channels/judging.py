"""The evaluation of a topic's channels' conditions on the bytes of its records."""

import logging
from collections.abc import Sequence
from typing import Any

from nightwire.core.channels.mapping import ChannelMapping
from nightwire.filters.language import Condition, FilterError, compile_sql, evaluate_all
from nightwire.schemas import AlertDecoder, AlertTable, MendableError, RegistryAwayError, survey, wire

log = logging.getLogger("nightwire.channels")

HEAD = wire.HEADER.size
"""Length of the header that values of one schema share. [byte]"""


class ChannelJudges:
    """The conditions of a topic's channels.

    They are evaluated together, vectorised, decoding only the fields that they read, as a source
    writes alerts of its survey alone.  Where that fails, each is evaluated as readers do.

    Args:
        mappings: The channels.
        of_survey: Whose alerts.
        registry: Knows the schemas.

    Attributes:
        mappings: Those whose condition compiles.
        refused: The reasons for the others, by their keys.
    """

    def __init__(self, mappings: Sequence[ChannelMapping], of_survey: str, registry: Any) -> None:
        self._survey, self._registry, self._decoder = survey(of_survey), registry, AlertDecoder(registry)
        self.mappings: list[ChannelMapping] = []
        self.refused: dict[str, str] = {}
        self._conditions: list[Condition] = []
        for one in mappings:
            try:
                self._conditions.append(Condition(one.condition, of_survey))
                self.mappings.append(one)
            except FilterError as error:
                self.refused[one.key] = "; ".join(error.reasons)
        self._programs = [compile_sql(one.condition, self._survey) for one in self.mappings]
        self._paths = self._paths_read()

    def judge(self, values: Sequence[bytes]) -> list[frozenset[int]]:
        """Return for each channel the indices of those of *values* that are its own.

        Raises:
            RegistryAwayError: The schema registry does not answer.
        """
        head = values[0][:HEAD] if values else b""
        if self._paths and not wire.is_container(head) and all(one[:HEAD] == head for one in values):
            try:
                return self._together(values, wire.unframe(head)[0])
            except (MendableError, ArithmeticError, KeyError, TypeError, ValueError) as error:
                log.debug("channels are judged one by one: %s", error)
        return [self._alone(condition, values) for condition in self._conditions]

    def _together(self, values: Sequence[bytes], schema_id: int) -> list[frozenset[int]]:
        bodies = [memoryview(one)[HEAD:] for one in values]
        batch = self._registry.codec(schema_id).columns(bodies, self._paths, missing_ok=True)
        said = evaluate_all(self._programs, AlertTable(batch, self._survey))
        return [
            frozenset(one.passed.nonzero()[0].tolist()).difference(one.faults, one.needs_python.tolist())
            for one in said
        ]

    def _alone(self, condition: Condition, values: Sequence[bytes]) -> frozenset[int]:
        said = condition.judge(values, self._decoder)
        for error in said.errors.values():
            if isinstance(error, RegistryAwayError):
                raise error
        return said.passed.union(said.errors)  # readers count what is no alert

    def _paths_read(self) -> list[str]:
        """Return the fields that the conditions read; none where that depends on the schema."""
        ids, found = AlertTable.fields([], self._survey), list[str]()
        for name in {name for one in self._programs for name in one.names}:
            if name.endswith("?"):
                return []
            own = [path for path in AlertTable.fields([name], self._survey) if path not in ids]
            found += own or ids
        return list(dict.fromkeys(found))
