"""Commits of rows with the Kafka offsets that they end at, exactly once.

The offsets are Delta's application transactions, one a partition (``alerts.lsst/0``: the next
offset).  So rows and position agree wherever a process is killed, and the table refuses a second
writer of the same partition.
"""

from collections.abc import Mapping

from deltalake import CommitProperties, DeltaTable, Transaction

from nightwire.archive.storage.store import ArchiveError
from nightwire.core.kafka import TopicPartition

ATTEMPTS = 20
"""Attempts of a commit that others forestall."""


class FencedError(ArchiveError):
    """Another process has archived the same partition meanwhile."""


OffsetRanges = Mapping[TopicPartition, tuple[int | None, int]]
"""Partitions' positions before rows are added, None for never, and after."""


def committed_offset(table: DeltaTable, partition: TopicPartition) -> int | None:
    """Return the next offset of *partition* as of the table's version; None for none."""
    return table.transaction_version(_application_id(partition))


def commit_properties(uri: str, table: DeltaTable, ranges: OffsetRanges) -> CommitProperties:
    """Return the properties of a commit of the end of each range to the table at *uri*.

    Raises:
        FencedError: The table is not at their beginnings.
    """
    for one, (found, _) in ranges.items():
        if (now := committed_offset(table, one)) != found:
            at = f"{_application_id(one)} is at {now}, not at {found}"
            raise FencedError(f"{uri}: {at}: another process archives it")
    done = [Transaction(_application_id(one), end) for one, (_, end) in ranges.items()]
    return CommitProperties(app_transactions=done, max_commit_retries=ATTEMPTS)


def _application_id(partition: TopicPartition) -> str:
    topic, number = partition
    return f"{topic}/{number}"
