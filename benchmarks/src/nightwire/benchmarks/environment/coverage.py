"""How far the filter engine has come: its accounts, read as they are written."""

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import TopicPartition

from nightwire.benchmarks.model.scenario import RunError
from nightwire.core.kafka import consumer
from nightwire.schemas import records
from nightwire.schemas.topics import ACCOUNTS

STAGE = "filters"
PATIENCE = 120.0
"""Longest wait for the next account. [s]"""


class Coverage:
    """Listens to `accounts` from now on.

    Attributes:
        covered: Offset after the last record that the engine has accounted for, by partition.
        passed: Records of *topic* that passed at least one filter, so far.
        evaluated: Records that each filter judged, so far.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._client = consumer(bootstrap)
        self.covered: dict[int, int] = {}
        self.passed = 0
        self.evaluated: dict[str, int] = {}
        spot = TopicPartition(ACCOUNTS, 0)
        marks = self._client.get_watermark_offsets(spot, timeout=10, cached=False)
        self._client.assign([TopicPartition(ACCOUNTS, 0, marks[1] if marks else 0)])

    def await_ends(self, ends: Mapping[int, int]) -> float:
        """Wait until the engine has accounted for all before *ends*; return when that was last.

        The time is that of the machine's monotonic clock. [s]

        Raises:
            RunError: The engine wrote no account for too long.
        """
        deadline = time.monotonic() + PATIENCE
        while any(self.covered.get(part, 0) < end for part, end in ends.items()):
            message = self._client.poll(0.05)
            if message is None:
                if time.monotonic() > deadline:
                    missing = {part: end - self.covered.get(part, 0) for part, end in ends.items()}
                    raise RunError(f"the filter engine wrote no account for {PATIENCE:g} s; open: {missing}")
                continue
            deadline = time.monotonic() + PATIENCE
            if message.error() is None and (value := message.value()) is not None:
                self._count(value)
        return time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def _count(self, value: bytes) -> None:
        account = records.ACCOUNT.decode(value)
        if account["stage"] != STAGE or account["source"] != self._topic:
            return
        part = account["partition"]
        self.covered[part] = max(self.covered.get(part, 0), account["last"] + 1)
        self.passed += account["delivered"]
        for name, classes in account["filters"].items():
            self.evaluated[name] = self.evaluated.get(name, 0) + classes["evaluated"]
