"""The accounts of the archive, and its dead letters."""

from collections import Counter
from collections.abc import Iterable

from nightwire.archive.storage import WholeRecord
from nightwire.archive.writing.survey_writer import SurveyWriter, Written
from nightwire.core.accounting import Account, OffsetAccounts, send_to_dead_letters, write_account
from nightwire.core.kafka import TopicPartition, Writer

STAGE = "archive"


class Ledger:
    """Counts what was archived, from the rows themselves where a process died before it could.

    Args:
        writer: Writes to Kafka.
        accounts: Those that are known.
    """

    def __init__(self, writer: Writer, accounts: Iterable[Account]) -> None:
        self._writer, self._accounts = writer, OffsetAccounts(STAGE, accounts)
        self.archived = self.dead = 0

    def begin(self, source: TopicPartition, tables: SurveyWriter, position: int | None, start: int) -> None:
        """Bring the account of *source* to where its rows end, and go on at *start*.

        Args:
            source: The partition.
            tables: That hold it.
            position: Where its rows end; None for none.
            start: Where reading goes on; later than *position* where Kafka has forgotten some.

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
            for record, reason in (
                tables.unreadable(source[1], counted or 0, position) if read > delivered else ()
            ):
                self._bury(record, reason)
        if position is None or start > position:
            self._accounts.begin(source, start)
        self._write()

    def note(self, written: Written) -> None:
        """Count what was written, and send what is no alert to the dead letters.

        Raises:
            DeliveryError: Kafka does not take them.
        """
        read, dead = Counter(one.source for one in written.records), Counter[TopicPartition]()
        for at, reason in written.faults.items():
            self._bury(written.records[at], reason)
            dead[written.records[at].source] += 1
        for source, (_, end) in written.ranges.items():
            count, bad = read[source], dead[source]
            self._accounts.count(source, end - 1, count, delivered=count - bad, dead_lettered=bad)
        self.archived += read.total()
        self.dead += dead.total()
        self._write()

    def _bury(self, one: WholeRecord, reason: str) -> None:
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
