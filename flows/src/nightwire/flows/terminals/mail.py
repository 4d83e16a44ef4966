"""E-mail: an event is a message, whose id is the event's."""

import os
import smtplib
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from hashlib import sha256

from nightwire.core.outside import Refused, Unavailable
from nightwire.flows.terminals.terminal import EventView, Terminal

SERVER, SENDER = "NIGHTWIRE_FLOW_SMTP", "NIGHTWIRE_FLOW_SENDER"
"""Variables: ``HOST:PORT`` of the mail server, and the sender's address."""
ALLOWED_RECIPIENTS = "NIGHTWIRE_FLOW_MAIL_TO"
"""Variable: domains and addresses, by commas, that owners may mail; operators mail anybody."""
MOST_IN_AN_HOUR = 100
"""Most messages of an owner's flows from one worker, counted by recipient: further ones wait."""
TIMEOUT = 20.0
"""Longest wait for a byte. [s]"""
DEADLINE = 60.0
"""Longest time for a message and its answers, as a whole. [s]"""


class Quota:
    """A limit of messages within an hour, by owner."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock, self._sent = clock, threading.Lock(), dict[str, deque[float]]()

    def take(self, owner: str, count: int = 1) -> None:
        """Count a message to *count* recipients; an empty *owner*, an operator's, has no limit.

        Raises:
            Unavailable: The owner has sent too many.
        """
        with self._lock:
            sent, now = self._sent.setdefault(owner, deque()), self._clock()
            while sent and sent[0] <= now - 3600:
                sent.popleft()
            if owner and len(sent) + count > MOST_IN_AN_HOUR:
                raise Unavailable(f"the flows of {owner} have sent {MOST_IN_AN_HOUR} messages within an hour")
            if owner:
                sent.extend([now] * count)


QUOTA = Quota()
"""The quota of this process."""


@dataclass(frozen=True)
class Mail(Terminal):
    """Sends events to people.

    Attributes:
        to: Addresses of the recipients.
        subject: Template of the subject, with fields as ``${object}``.
        template: Template of the text; empty for all fields, a line each.
        owner: Owner whose quota it takes; empty for none.
        undelivered: Recipients refused by event, where others have it: only these are tried again.
    """

    to: Sequence[str]
    subject: str = "nightwire: ${id}"
    template: str = ""
    owner: str = ""
    undelivered: dict[str, list[str]] = field(default_factory=dict)

    def deliver(self, event: EventView) -> None:
        """Send *event* to all recipients who do not have it."""
        host, _, port = os.environ.get(SERVER, "127.0.0.1:25").rpartition(":")
        try:
            with _BoundedSmtp(host, int(port)) as server:
                server.ehlo_or_helo_if_needed()
                if server.has_extn("starttls"):
                    server.starttls(context=ssl.create_default_context())
                undelivered = self.undelivered.get(event.identity, self.to)
                QUOTA.take(self.owner, len(undelivered))  # attempts that reach no server do not count
                self._send(server, event)
        except smtplib.SMTPResponseException as error:
            kind = Refused if 500 <= error.smtp_code < 600 else Unavailable
            raise kind(f"{host} answers {error.smtp_code} {error.smtp_error!r}") from error
        except smtplib.SMTPRecipientsRefused as error:
            said = ", ".join(f"{who}: {code} {text!r}" for who, (code, text) in error.recipients.items())
            never = all(500 <= code < 600 for code, _ in error.recipients.values())
            raise (Refused if never else Unavailable)(f"{host} refuses {said}") from error
        except (OSError, smtplib.SMTPException) as error:
            raise Unavailable(f"{host}: {error}") from error

    def _send(self, server: smtplib.SMTP, event: EventView) -> None:
        """Send *event*, and raise for refused recipients too, as smtplib does only for all."""
        if refused := server.send_message(self.message(event), to_addrs=self.undelivered.get(event.identity)):
            self.undelivered.clear()
            self.undelivered[event.identity] = [*refused]
            raise smtplib.SMTPRecipientsRefused(refused)

    def message(self, event: EventView) -> EmailMessage:
        """Return *event* as a message.

        Raises:
            Refused: A header cannot be encoded.
        """
        made = EmailMessage()
        sender = os.environ.get(SENDER, "nightwire@localhost")
        try:
            made["From"], made["To"] = sender, ", ".join(self.to)
            made["Subject"] = " ".join(event.text(self.subject).split())
        except ValueError as error:
            raise Refused(f"no headers of a message: {error}") from error
        made["Date"] = formatdate()
        made["Message-ID"] = (
            f"<{sha256(event.identity.encode()).hexdigest()[:32]}@{sender.partition('@')[2]}>"
        )
        end = f"Sent by the flow {event.flow}, which `nightwire flow down {event.flow}` ends.\n"
        made.set_content(event.text(self.template) if self.template else f"{event.lines()}\n\n{end}")
        return made


class _BoundedSmtp(smtplib.SMTP):
    """An SMTP client that hangs up after `DEADLINE`."""

    def __init__(self, host: str, port: int) -> None:
        self._timer = threading.Timer(DEADLINE, self._hang_up)
        self._timer.start()
        try:
            super().__init__(host, port, timeout=TIMEOUT)
        except BaseException:
            self._timer.cancel()
            raise

    def close(self) -> None:
        """Hang up."""
        self._timer.cancel()
        super().close()

    def _hang_up(self) -> None:
        if self.sock is not None:
            with suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
