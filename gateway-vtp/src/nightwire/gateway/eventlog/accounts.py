"""The gateway's accounts: counts of rejected events, and the thread that writes them to Kafka."""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future

from nightwire.core.accounting import Account, write_account
from nightwire.core.accounting import Key as AccountKey
from nightwire.core.kafka import DeliveryError, Writer

log = logging.getLogger(__name__)

STAGE = "gateway"
STAGE_OUT = "vtp-out"


class RejectionCounter:
    """Counts of rejected events of one source since this process started.

    Args:
        source: Where the events came from: ``vtp-authors``, ``vtp-brokers``.
        started: When this process started, which is in the key of its account. [ms since 1970]
    """

    def __init__(self, source: str, started: int) -> None:
        self._source, self._started = source, started
        self._rejected: Counter[str] = Counter()

    def reject(self, reason: str) -> Account:
        """Count one rejected event; return the account as it is now."""
        self._rejected[reason] += 1
        read = self._rejected.total()
        first = self._started
        return Account(STAGE, self._source, 0, first, first, read=read, rejected=dict(self._rejected))


class AccountWriter:
    """Write accounts to Kafka, the latest of each key, and report when it has them.

    `post` may be called from any thread.  While Kafka is away it goes on trying.

    Args:
        make_writer: Returns a new writer; asked again after one failed.
    """

    def __init__(self, make_writer: Callable[[], Writer]) -> None:
        self._make_writer = make_writer
        self._writer: Writer | None = None
        self._latest: dict[AccountKey, Account] = {}
        self._waiting: list[Future[None]] = []
        self._posted = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="accounts", daemon=True)
        self._thread.start()

    def post(self, account: Account) -> Future[None]:
        """Write *account*; the future is done once Kafka has it, or a later one of its key."""
        acknowledged: Future[None] = Future()
        with self._posted:
            self._latest[account.key] = account
            self._waiting.append(acknowledged)
            self._posted.notify()
        return acknowledged

    def close(self, timeout: float) -> bool:
        """Write what is left; say whether Kafka has it all within *timeout* [s].  Blocks."""
        with self._posted:
            self._stopping = True
            self._posted.notify()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._posted:
                self._posted.wait_for(lambda: self._waiting or self._stopping)
                if not self._waiting:
                    return
                accounts, self._latest = self._latest, {}
                waiting, self._waiting = self._waiting, []
            self._write(list(accounts.values()))
            for acknowledged in waiting:
                if acknowledged.set_running_or_notify_cancel():
                    acknowledged.set_result(None)

    def _write(self, accounts: list[Account]) -> None:
        while True:
            try:
                self._writer = self._writer or self._make_writer()
                for account in accounts:
                    write_account(self._writer, account)
                self._writer.flush()
            except DeliveryError as error:
                log.warning("accounts are not in Kafka yet, trying again: %s", error)
                self._writer = None
            else:
                return
