"""The registry's store: proposals go to the log, answers come from what the log made of them."""

import json
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from nightwire.schemas.registry.subjects import Outcome, Rejected, Subjects, Version

log = logging.getLogger(__name__)

READ_BACK_TIMEOUT = 10.0
"""Longest wait for a record of ours to come back from the log. [s]"""
FIRST_READ_TIMEOUT = 4.0
"""Longest wait of a request for the first reading of the log. [s]  Our clients wait 5 s."""
ID_ATTEMPTS = 10
"""How often an id that another server took first is replaced by the next."""


class UnavailableError(Exception):
    """The log cannot be written or read just now; the message says why."""


class Log(Protocol):
    """What the store needs of its log."""

    def append(self, key: str, value: bytes, /) -> None:
        """Write a record and wait until it is kept."""

    def renew(self) -> None:
        """Read from the beginning again, by a new client: a written record did not come back."""


class Store:
    """Subjects as the log has them.  Safe to use from several threads.

    Args:
        on_record: Called with what came of each record of the log: ``applied``, ``refused`` or
            ``foreign``.
    """

    def __init__(self, on_record: Callable[[str], None] = lambda _: None) -> None:
        self._on_record = on_record
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._subjects = Subjects()
        self._catching_up: Subjects | None = None
        self._awaited: dict[str, Outcome | None] = {}
        self.ready = False

    @contextmanager
    def subjects(self) -> Iterator[Subjects]:
        """Lend the subjects for a look; nothing changes meanwhile."""
        with self._changed:
            yield self._subjects

    def count(self) -> int:
        """Return how many schemas are known."""
        with self._changed:
            return len(self._subjects.schemas)

    def await_ready(self) -> bool:
        """Wait for the first reading of the log; return whether it has come to its end."""
        with self._changed:
            return self._changed.wait_for(lambda: self.ready, FIRST_READ_TIMEOUT)

    def restart(self) -> None:
        """Begin to read the log from its start; until it is read, answers come from the old
        state.
        """
        with self._changed:
            self._catching_up = Subjects()

    def end_of_log(self) -> None:
        """The end of the log is reached."""
        with self._changed:
            if self._catching_up is not None:
                self._subjects, self._catching_up = self._catching_up, None
            self.ready = True
            self._changed.notify_all()

    def take(self, value: bytes) -> None:
        """Take in the next record of the log."""
        with self._changed:
            try:
                record = json.loads(value)
                outcome = (self._catching_up or self._subjects).apply(record)
            except (ValueError, KeyError, TypeError) as error:
                log.warning("a record of the log is none of ours, and is passed over: %s", error)
                self._on_record("foreign")
                return
            self._on_record("refused" if isinstance(outcome, Rejected) else "applied")
            if record.get("proposal") in self._awaited:
                self._awaited[record["proposal"]] = outcome
                self._changed.notify_all()

    def register(self, to: Log, subject: str, schema: str, schema_id: int | None) -> Version | Rejected:
        """Propose a version and return what the log made of it.

        Raises:
            UnavailableError: The log cannot be written or read.
        """
        with self._writing:
            for _ in range(ID_ATTEMPTS):
                outcome = self._propose(to, self._registration(subject, schema, schema_id))
                if isinstance(outcome, Version) or not (isinstance(outcome, Rejected) and outcome.retryable):
                    break
        if isinstance(outcome, Version | Rejected):
            return outcome
        raise UnavailableError(f"the log gave {outcome!r}")

    def change(self, to: Log, record: dict[str, Any]) -> Outcome:
        """Propose a deletion or a configuration and return what the log made of it.

        Raises:
            UnavailableError: The log cannot be written or read.
        """
        with self._writing:
            return self._propose(to, record)

    def _registration(self, subject: str, schema: str, schema_id: int | None) -> dict[str, Any]:
        with self.subjects() as known:
            number = known.id_for(subject, schema) if schema_id is None else schema_id
        explicit = schema_id is not None
        return {"do": "register", "subject": subject, "schema": schema, "id": number, "explicit": explicit}

    def _propose(self, to: Log, record: dict[str, Any]) -> Outcome:
        proposal = uuid.uuid4().hex
        setting = record["do"] in ("config", "mode")
        key = f"{record['do']} {record['subject'] or ''}" if setting else proposal
        self._awaited[proposal] = None
        try:
            to.append(key, json.dumps({**record, "proposal": proposal}).encode())
            if (outcome := self._await(proposal)) is None:
                to.renew()
                raise UnavailableError(
                    "the record is written, but does not come back from the log; ask again"
                )
            return outcome
        finally:
            del self._awaited[proposal]

    def _await(self, proposal: str) -> Outcome | None:
        """Return what the log made of *proposal*; None where it does not come back."""
        with self._changed:
            self._changed.wait_for(lambda: self._awaited[proposal] is not None, READ_BACK_TIMEOUT)
            return self._awaited[proposal]
