"""How far the source has been mirrored: its accounts say so.  Pure.

Each partition of the source has an account that grows from transaction to transaction, until it is long
enough and the next one begins.  It is written in the transaction of the alerts that it counts, so what it
says and what lies in ``alerts.<survey>`` are the same at every moment, and a kill changes nothing in that.
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
        prefix: What the sources of its accounts begin with; the topic follows.
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
        """Return the accounts as they are once *items* are mirrored; nothing is changed yet."""
        by_spot: dict[TopicPartition, list[Item]] = defaultdict(list)
        for item in items:
            by_spot[item.source_partition].append(item)
        return [
            grown(self._open(source_partition, some[0].first), some)
            for source_partition, some in by_spot.items()
        ]

    def keep(self, accounts: Iterable[Account]) -> None:
        """Take over *accounts*, which Kafka has."""
        for account in accounts:
            self._latest[account.source.removeprefix(self._prefix), account.partition] = account

    def _open(self, source_partition: TopicPartition, first: int) -> Account:
        topic, partition = source_partition
        source = (self._prefix + topic, partition)
        return open_account(self._latest.get(source_partition), STAGE, source, first)


def grown(account: Account, items: Sequence[Item]) -> Account:
    """Return *account* with *items*, the next ones of its partition, counted too."""
    rejected: Counter[str] = Counter()
    for item in items:
        if item.rejected is not None:
            rejected[item.rejected] += item.read
    return extended(
        account,
        items[-1].last,
        sum(item.read for item in items),
        delivered=sum(len(item.outputs) > 0 for item in items),
        dead_lettered=sum(item.read for item in items if item.dead is not None),
        rejected=rejected,
    )
