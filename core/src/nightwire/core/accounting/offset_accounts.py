"""The accounts of a stage that reads topics: one a range of offsets of a partition.  Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from nightwire.core.accounting.accounts import Account
from nightwire.core.kafka import TopicPartition

RANGE = 10_000
"""Offsets after which a partition's next account begins: compaction keeps one record of so many."""


def open_account(latest: Account | None, stage: str, source: TopicPartition, first: int) -> Account:
    """Return the account in which the record after *latest* is counted: *latest* until it is full.

    Args:
        latest: The partition's newest account; None where it has none.
        stage: Which stage reads.
        source: Topic and partition.
        first: Where to begin without a *latest* one.
    """
    if latest is not None and latest.last - latest.first + 1 < RANGE:
        return latest
    begin = first if latest is None else latest.last + 1
    return Account(stage, *source, begin, begin - 1, read=0)


def extended(
    account: Account,
    last: int,
    read: int = 1,
    *,
    delivered: int = 0,
    dead_lettered: int = 0,
    capped: int = 0,
    rejected: Mapping[str, int] | None = None,
) -> Account:
    """Return *account* with the next *read* records of its partition, up to the offset *last*."""
    return replace(
        account,
        last=max(account.last, last),
        read=account.read + read,
        delivered=account.delivered + delivered,
        dead_lettered=account.dead_lettered + dead_lettered,
        capped=account.capped + capped,
        rejected=dict(Counter(account.rejected) + Counter(rejected or {})),
    )


class OffsetAccounts:
    """The records that one stage has read of its partitions, and their classes.

    Args:
        stage: Its name.
        accounts: Those of an earlier process, of any stage and in any order: what they hold is not
            counted again.
        positions: The next offset to count, where no account says so.
    """

    def __init__(
        self,
        stage: str,
        accounts: Iterable[Account] = (),
        *,
        positions: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self._stage = stage
        self._next: dict[TopicPartition, int] = dict(positions or {})
        self._open: dict[TopicPartition, Account] = {}
        self._changed: set[TopicPartition] = set()
        for one in accounts:
            if one.stage == stage:
                source = (one.source, one.partition)
                self._next[source] = max(self._next.get(source, 0), one.last + 1)

    @property
    def sources(self) -> set[TopicPartition]:
        """The partitions that were ever read."""
        return set(self._next)

    def position(self, source: TopicPartition) -> int | None:
        """Return the next offset of *source* to count; None where it was never read."""
        return self._next.get(source)

    def begin(self, source: TopicPartition, offset: int) -> None:
        """Note that *source* is read from *offset* on, whatever was before."""
        self._next[source] = offset
        self._open[source] = open_account(None, self._stage, source, offset)
        self._changed.add(source)

    def count(
        self,
        source: TopicPartition,
        last: int,
        read: int = 1,
        *,
        delivered: int = 0,
        dead_lettered: int = 0,
        capped: int = 0,
        rejected: Mapping[str, int] | None = None,
    ) -> None:
        """Count *read* records of *source* up to the offset *last*, unless counted already."""
        if last < self._next.get(source, 0):
            return
        first = self._next.get(source, last + 1 - read)
        account = open_account(self._open.get(source), self._stage, source, first)
        classes = {"delivered": delivered, "dead_lettered": dead_lettered, "capped": capped}
        self._open[source] = extended(account, last, read, **classes, rejected=rejected)
        self._next[source] = last + 1
        self._changed.add(source)

    def changed(self) -> list[Account]:
        """Return the accounts that changed since the last call."""
        accounts = [self._open[source] for source in sorted(self._changed)]
        self._changed.clear()
        return accounts
