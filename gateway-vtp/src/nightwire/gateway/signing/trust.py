"""Whose events and subscriptions are believed: keys and policy, read when files change."""

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nightwire.gateway.signing.bundled_signatures import bundled_signatures
from nightwire.gateway.signing.keyring import Keyring, KeyringError, read_keys
from nightwire.gateway.signing.trust_policy import Policy, PolicyError, read_policy
from nightwire.gateway.signing.verification import Finding, Verdict, check_signature
from nightwire.gateway.voevent.packet import Packet, element_bytes
from nightwire.gateway.voevent.xml import parse_xml
from nightwire.gateway.vtp.transport import read_transport

log = logging.getLogger(__name__)

LOOK_INTERVAL = 1.0
"""Time between looks at whether the files have changed. [s]"""
ANSWER_AGE = timedelta(minutes=5)
"""Oldest signature of a subscriber's answer; within this time none is taken twice."""

Stamp = tuple[tuple[str, int, int], ...]
"""Names, times and sizes of files."""


@dataclass(frozen=True)
class TrustFiles:
    """Where keys and policy lie.

    Attributes:
        keyring: Folder of public keys.
        policy: Table of who may sign for whom; without it a key signs for its own names.
    """

    keyring: Path
    policy: Path | None = None


class Trust:
    """Judge signatures.

    Args:
        files: Where keys and policy lie.
        max_age: Oldest signature of an event that is taken.
        now: Tells the time of day.
    """

    def __init__(
        self, files: TrustFiles, max_age: timedelta, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._files, self._max_age, self._now = files, max_age, now
        self._stamp: Stamp | None = None
        self._looked = -LOOK_INTERVAL
        self._keyring, self._policy = Keyring(), Policy()
        self._answers: dict[bytes, datetime] = {}
        self.look()

    def judge_event(self, packet: Packet) -> Verdict:
        """Return the first good signature of *packet* by a permitted signer, or the fault."""
        self.look()
        author = voevent_author(packet)
        return self._judge(packet.raw, self._max_age, lambda one: self._event_verdict(one, author, packet))

    def judge_answer(self, document: bytes, broker: str) -> Verdict:
        """Return what a subscriber's answer to the greeting of *broker* is worth.

        Raises:
            XMLRefusedError: It is no Transport message.
        """
        self.look()
        if read_transport(parse_xml(document)).origin != broker:
            return Verdict(Finding.NOT_ALLOWED, f"the answer is not to {broker}")
        verdict = self._judge(document, ANSWER_AGE, self._answer_verdict)
        if verdict.finding is not Finding.GOOD:
            return verdict
        return verdict if self._is_fresh(document) else Verdict(Finding.STALE, "the answer was given before")

    def look(self) -> None:
        """Read keys and policy again where their files have changed."""
        if time.monotonic() - self._looked < LOOK_INTERVAL:
            return
        self._looked = time.monotonic()
        stamp = _stamp(self._files)
        if stamp != self._stamp:
            self._stamp = stamp
            self._keyring, self._policy = read_keyring(self._files.keyring), _policy(self._files.policy)
            log.info("%d keys are trusted, of %s", len(self._keyring), self._files.keyring)

    def _judge(self, document: bytes, max_age: timedelta, allow: Callable[[Verdict], Verdict]) -> Verdict:
        worst = Verdict(Finding.MISSING, "it is not signed, and signatures are required here")
        for one in bundled_signatures(document):
            verdict = allow(check_signature(one.signed, one.armor, self._keyring, self._now(), max_age))
            if verdict.finding is Finding.GOOD:
                return verdict
            worst = verdict
        return worst

    def _event_verdict(self, verdict: Verdict, author: str, packet: Packet) -> Verdict:
        signer = verdict.signer
        if signer is None or self._policy.may_sign(signer, author=author, ivorn=packet.ivorn):
            return verdict
        words = f"it is signed by {signer}, who may not sign {packet.ivorn} for {author or 'no author'}"
        return Verdict(Finding.NOT_ALLOWED, words)

    def _answer_verdict(self, verdict: Verdict) -> Verdict:
        if verdict.signer is None or self._policy.may_subscribe(verdict.signer):
            return verdict
        return Verdict(Finding.NOT_ALLOWED, f"{verdict.signer} may not subscribe")

    def _is_fresh(self, document: bytes) -> bool:
        """Remember an answer; say whether it is new."""
        now = self._now()
        self._answers = {one: until for one, until in self._answers.items() if until > now}
        digest = hashlib.sha256(element_bytes(document)).digest()
        fresh = digest not in self._answers
        self._answers[digest] = now + 2 * ANSWER_AGE
        return fresh


def voevent_author(packet: Packet) -> str:
    """Return the AuthorIVORN of *packet*, empty where it has none."""
    return packet.facts()["author"] or ""


def read_keyring(folder: Path) -> Keyring:
    """Return the keys in the files of *folder*.  A file that holds none is logged."""
    certs, revocations = [], []
    for file in _key_files(folder):
        try:
            found = read_keys(file.read_bytes())
        except (KeyringError, OSError) as error:
            log.error("keyring: %s is not used: %s", file, error)  # noqa: TRY400
            continue
        certs += found[0]
        revocations += found[1]
    return Keyring(certs, revocations)


def _policy(path: Path | None) -> Policy:
    """Return the policy in *path*; nobody may do anything by one that makes no sense."""
    try:
        return Policy() if path is None else read_policy(path.read_text())
    except (PolicyError, OSError, UnicodeDecodeError) as error:
        log.error("%s is not used, nobody may sign: %s", path, error)  # noqa: TRY400
        return Policy(own_names=False, subscribers=frozenset())


def _key_files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError as error:
        log.error("keyring: %s cannot be read: %s", folder, error)  # noqa: TRY400
        return []


def _stamp(files: TrustFiles) -> Stamp:
    paths = [*_key_files(files.keyring), *([files.policy] if files.policy else [])]
    found = []
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:  # it went away just now
            continue
        found.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(found)
