"""The offset accounts of the stage `archive`, and its dead letters."""

from collections import Counter
from collections.abc import Iterable

from nightwire.archive.storage import Packet
from nightwire.archive.writing.survey_writer import SurveyWriter, WriteResult
from nightwire.core.accounting import Account, OffsetAccounts, send_to_dead_letters, write_account
from nightwire.core.kafka import TopicPartition, Writer

STAGE = "archive"


class ArchiveAccounts:
    """Counts archived records, from the rows themselves where a process died before it could.

    Args:
        writer: Writes to Kafka.
        accounts: Those of earlier processes.
    """

    def __init__(self, writer: Writer, accounts: Iterable[Account]) -> None:
        self._writer, self._accounts = writer, OffsetAccounts(STAGE, accounts)
        self.archived = self.dead_lettered = 0

    def resume(self, source: TopicPartition, tables: SurveyWriter, position: int | None, start: int) -> None:
        """Count the archived records of a partition that are not counted yet, and go on at *start*.

        Args:
            source: The partition.
            tables: Those of its survey.
            position: Its next offset to archive; None where it was never archived.
            start: The next offset to read; later than *position* where Kafka has deleted some.

        Raises:
            DeliveryError: Kafka does not take the accounts.
        """
        counted = self._accounts.position(source)
        if position is not None and (counted is None or counted < position):
            read = tables.packets.count(source[1], counted or 0, position)
            delivered = tables.alerts.count(source[1], counted or 0, position)
            if read:
                dead = read - delivered
                self._accounts.count(source, position - 1, read, delivered=delivered, dead_lettered=dead)
            unreadable = tables.unreadable(source[1], counted or 0, position) if read > delivered else ()
            for packet, reason in unreadable:
                self._send_to_dead_letters(packet, reason)
        if position is None or start > position:
            self._accounts.begin(source, start)
        self._write()

    def count(self, written: WriteResult) -> None:
        """Count written records, and send those that are no alerts to the dead letters.

        Raises:
            DeliveryError: Kafka does not take them.
        """
        read, dead = Counter(one.source for one in written.packets), Counter[TopicPartition]()
        for n, reason in written.faults.items():
            self._send_to_dead_letters(written.packets[n], reason)
            dead[written.packets[n].source] += 1
        for source, (_, end) in written.ranges.items():
            count, bad = read[source], dead[source]
            self._accounts.count(source, end - 1, count, delivered=count - bad, dead_lettered=bad)
        self.archived += read.total()
        self.dead_lettered += dead.total()
        self._write()

    def _send_to_dead_letters(self, one: Packet, reason: str) -> None:
        headers = [(name, value or b"") for name, value in one.headers]
        send_to_dead_letters(
            self._writer,
            one.value or b"",
            stage=STAGE,
            source=one.origin,
            reason=reason,
            key=one.key,
            headers=headers,
        )

    def _write(self) -> None:
        for account in self._accounts.changed():
            write_account(self._writer, account)
        self._writer.flush()
