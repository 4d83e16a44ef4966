"""Accounts: the proof that in = out.

Counters restart at zero and count a replayed batch twice, so each stage keeps its account by source
offsets: one record per (stage, source, partition, first offset) in the compacted topic `accounts`,
written after the outputs are acknowledged and before the offset is committed.  A range that is
replayed writes the same key again, and so counts once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from nightwire.core.kafka import Record, TopicPartition, Writer, read_to_end
from nightwire.core.runtime import now_ms
from nightwire.schemas import records
from nightwire.schemas.topics import ACCOUNTS

Key = tuple[str, str, int, int]


@dataclass(frozen=True)
class FilterClasses:
    """What became of the records that one filter looked at."""

    evaluated: int = 0
    passed: int = 0
    rejected: int = 0
    capped: int = 0
    faulted: int = 0


@dataclass(frozen=True)
class Account:
    """What became of one range of one source.

    *read* counts records, not offsets: compaction and transactions leave holes.  For stages that
    read no topic, *source* is a name (``visit/sim``, ``vtp-authors``) and *first* = *last* tells
    its accounts apart.
    """

    stage: str
    source: str
    partition: int
    first: int
    last: int
    read: int
    delivered: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict)
    capped: int = 0
    faulted: int = 0
    dead_lettered: int = 0
    filters: Mapping[str, FilterClasses] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What makes two records the same account."""
        return (self.stage, self.source, self.partition, self.first)


@dataclass(frozen=True)
class StageTotal:
    """The sums of a stage: the records that it read, and their classes."""

    stage: str
    read: int
    delivered: int
    rejected: int
    capped: int
    faulted: int
    dead_lettered: int

    @property
    def missing(self) -> int:
        """Records read that are in no class; zero when in = out."""
        return self.read - (self.delivered + self.rejected + self.capped + self.faulted + self.dead_lettered)


def write_account(writer: Writer, account: Account) -> None:
    """Queue *account* to `accounts`; the caller flushes.

    Raises:
        DeliveryError: An earlier record of *writer* was lost.
    """
    record = account_record(account)
    writer.write(record.topic, record.value, key=record.key)


def account_record(account: Account) -> Record:
    """Return *account* as its record in `accounts`."""
    key = "|".join(map(str, account.key)).encode()
    return Record(ACCOUNTS, records.ACCOUNT.encode(to_record(account)), key)


def to_record(account: Account) -> dict[str, Any]:
    """Return *account* as the fields of its Avro record, written now."""
    filters = {name: vars(classes) for name, classes in account.filters.items()}
    return {
        **vars(account),
        "rejected": dict(account.rejected),
        "filters": filters,
        "written": now_ms(),
    }


def from_record(record: Mapping[str, Any]) -> Account:
    """Return the account that *record*, decoded from `accounts`, holds."""
    values = {name: record[name] for name in Account.__dataclass_fields__}
    values["filters"] = {name: FilterClasses(**classes) for name, classes in record["filters"].items()}
    return Account(**values)


def read_accounts(bootstrap: str, since: datetime | None = None) -> list[Account]:
    """Return every account in Kafka, the last record of each key, ordered by key.

    Args:
        bootstrap: ``HOST:PORT[,HOST:PORT…]``.
        since: Only those written from then on, and some before; None: all.

    Raises:
        KafkaException: Kafka cannot be reached.
    """
    latest: dict[Key, Account] = {}
    for message in read_to_end(bootstrap, [ACCOUNTS], since=since):
        value = message.value()
        if value is not None:
            account = from_record(records.ACCOUNT.decode(value))
            latest[account.key] = account
    return sorted(latest.values(), key=lambda account: account.key)


def totals(accounts: Iterable[Account]) -> list[StageTotal]:
    """Add *accounts* up by stage; each filter is a stage of its own, ``filter.<owner>.<name>``."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * 6)
    for account in accounts:
        for stage, row in _rows(account):
            sums[stage] = [a + b for a, b in zip(sums[stage], row, strict=True)]
    return [StageTotal(stage, *row) for stage, row in sorted(sums.items())]


def filters_together(stages: Sequence[StageTotal]) -> list[StageTotal]:
    """Return *stages* with the filters that add up summed into the last."""
    fine = [one for one in stages if one.stage.startswith("filter.") and not one.missing]
    if len(fine) < 2:
        return list(stages)
    numbers = (sum(column) for column in zip(*(list(vars(one).values())[1:] for one in fine), strict=True))
    return [*(one for one in stages if one not in fine), StageTotal(f"{len(fine)} filters", *numbers)]


def lag(accounts: Iterable[Account], ends: Mapping[TopicPartition, int]) -> dict[str, int]:
    """Return the records of each stage's sources that it has not accounted for; nothing of a stage
    that reads no topic, nor of the slow lanes, of which `filter top` tells.

    Args:
        accounts: All accounts.
        ends: Offset after the last record of each (topic, partition).
    """
    done: dict[str, dict[TopicPartition, int]] = {}
    for account in accounts:
        reached = done.setdefault(account.stage, {})
        partition = (account.source, account.partition)
        reached[partition] = max(reached.get(partition, 0), account.last + 1)
    return {
        stage: sum(max(0, ends[one] - end) for one, end in reached.items() if one in ends)
        for stage, reached in done.items()
        if reached.keys() & ends.keys()
    }


def _rows(account: Account) -> Iterable[tuple[str, list[int]]]:
    yield (
        account.stage,
        [
            account.read,
            account.delivered,
            sum(account.rejected.values()),
            account.capped,
            account.faulted,
            account.dead_lettered,
        ],
    )
    for name, one in account.filters.items():
        row = [one.evaluated, one.passed, one.rejected, one.capped, one.faulted, 0]
        yield f"filter.{name.replace('/', '.')}", row


NOT_A_TOPIC = ("visit/", "vtp-")
"""Beginnings of the sources that have no offsets, so no ranges to join."""


def discrepancies(accounts: Iterable[Account]) -> list[str]:
    """Say, in plain words, where *accounts* do not prove that in = out; empty when they do.

    Looked for: classes that do not add up to the records read, and ranges of one source that
    overlap or leave offsets out.
    """
    known = list(accounts)
    return [*_unclassified(known), *_unjoined(known)]


def _unclassified(accounts: Iterable[Account]) -> Iterable[str]:
    for account in accounts:
        for total in totals([account]):
            if total.missing:
                where = f"{account.source}[{account.partition}] from {account.first}"
                yield f"{total.stage}: {total.missing} of {total.read} in no class, {where}"


def _unjoined(accounts: Iterable[Account]) -> Iterable[str]:
    by_source: dict[tuple[str, str, int], list[Account]] = defaultdict(list)
    for account in accounts:
        if not account.source.startswith(NOT_A_TOPIC):
            by_source[account.stage, account.source, account.partition].append(account)
    for (stage, source, partition), ranges in by_source.items():
        for left, right in pairwise(sorted(ranges, key=lambda account: account.first)):
            if right.first != left.last + 1:
                yield f"{stage}: {source}[{partition}] {_joint(left, right)}"


def _joint(left: Account, right: Account) -> str:
    if right.first <= left.last:
        return f"counts offsets {right.first} to {left.last} twice"
    return f"leaves out offsets {left.last + 1} to {right.first - 1}"
