"""How far the source has been mirrored: its accounts say so.  Pure.

Each partition of the source has an account that grows from transaction to transaction, until it is
long enough and the next one begins.  It is written in the transaction of the alerts that it counts,
so that it agrees with ``alerts.<survey>`` at every moment, whenever the process is killed.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from nightwire.core.accounting import Account, extended, open_account
from nightwire.core.kafka import TopicPartition
from nightwire.producer.ingest.items import Item

STAGE = "ingest"


class SourcePositions:
    """The latest account of each partition of the source.

    Args:
        prefix: Begins the sources in its accounts, before the topic.
        accounts: All that were written, in any order.
    """

    def __init__(self, prefix: str, accounts: Iterable[Account] = ()) -> None:
        self._prefix = prefix
        self._latest: dict[TopicPartition, Account] = {}
        for account in sorted(accounts, key=lambda account: account.first):
            if account.stage == STAGE and account.source.startswith(prefix):
                self._latest[account.source.removeprefix(prefix), account.partition] = account

    @property
    def topics(self) -> set[str]:
        """The topics of the source that were ever read."""
        return {topic for topic, _ in self._latest}

    def position(self, source_partition: TopicPartition) -> int | None:
        """Return the next offset to mirror; None of a partition that was never read."""
        account = self._latest.get(source_partition)
        return None if account is None else account.last + 1

    def after(self, items: Iterable[Item]) -> list[Account]:
        """Return the accounts once *items* are mirrored; nothing is changed yet."""
        by_partition: dict[TopicPartition, list[Item]] = defaultdict(list)
        for item in items:
            by_partition[item.source_partition].append(item)
        return [
            grown(self._open(source_partition, some[0].first), some)
            for source_partition, some in by_partition.items()
        ]

    def keep(self, accounts: Iterable[Account]) -> None:
        """Adopt *accounts* that Kafka has acknowledged."""
        for account in accounts:
            self._latest[account.source.removeprefix(self._prefix), account.partition] = account

    def _open(self, source_partition: TopicPartition, first: int) -> Account:
        topic, partition = source_partition
        source = (self._prefix + topic, partition)
        return open_account(self._latest.get(source_partition), STAGE, source, first)


def grown(account: Account, items: Sequence[Item]) -> Account:
    """Return *account* with the next *items* of its partition."""
    rejected: Counter[str] = Counter()
    for item in items:
        if item.rejected is not None:
            rejected[item.rejected] += item.read
    return extended(
        account,
        items[-1].last,
        sum(item.read for item in items),
        delivered=sum(len(item.outputs) > 0 for item in items),
        dead_lettered=sum(item.read for item in items if item.dead_letter_reason is not None),
        rejected=rejected,
    )
