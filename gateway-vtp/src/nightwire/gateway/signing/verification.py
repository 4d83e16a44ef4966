"""The check of an OpenPGP signature against keys that are known.  No files, no clock."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from pysequoia import Sig, verify

from nightwire.gateway.signing.keyring import Keyring, first_line
from nightwire.gateway.signing.trust_policy import Signer

SKEW = timedelta(minutes=5)
"""How far the signer's clock may be ahead of ours."""


class Finding(StrEnum):
    """What a signature turned out to be."""

    GOOD = "good"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    UNKNOWN_KEY = "unknown-key"
    EXPIRED = "expired"
    REVOKED = "revoked"
    STALE = "stale"
    BAD = "bad"
    NOT_ALLOWED = "not-allowed"


@dataclass(frozen=True)
class Verdict:
    """What was found of one signature.

    Attributes:
        finding: Good, or what is wrong.
        reason: The same in words, for whoever sent it; empty where it is good.
        signer: Whose it is, where that is proved.
    """

    finding: Finding
    reason: str = ""
    signer: Signer | None = None


def check_signature(
    signed: bytes, armor: bytes, keyring: Keyring, now: datetime, max_age: timedelta
) -> Verdict:
    """Return what *armor* is worth as the detached signature of *signed*.

    The key has to be good when the signature was made and still be good *now*: else whoever finds
    an old key could date his signatures back.  A signature older than *max_age* is refused, for it
    may be played back.
    """
    try:
        signature = Sig.from_bytes(armor)
    except Exception as error:  # noqa: BLE001  (the library raises bare exceptions)
        return Verdict(Finding.UNREADABLE, f"its signature cannot be read: {first_line(error)}")
    if stale := _stale(signature.created, now, max_age):
        return Verdict(Finding.STALE, stale)
    key = keyring.find(signature)
    if key is None:
        issuer = signature.issuer_fingerprint or signature.issuer_key_id
        return Verdict(Finding.UNKNOWN_KEY, f"it is signed by the key {issuer}, which is not known here")
    if key.revoked:
        return Verdict(Finding.REVOKED, f"it is signed by the key {key.signer}, which is revoked")
    if key.expires is not None and key.expires <= now:
        return Verdict(Finding.EXPIRED, f"it is signed by the key {key.signer}, which expired {key.expires}")
    try:
        verify(signed, lambda _wanted: [key.cert], signature=signature)
    except Exception as error:  # noqa: BLE001  (the library raises bare exceptions)
        return Verdict(Finding.BAD, f"its signature by the key {key.signer} is wrong: {first_line(error)}")
    return Verdict(Finding.GOOD, signer=key.signer)


def _stale(made: datetime | None, now: datetime, max_age: timedelta) -> str:
    """Return what is wrong with the time at which a signature was made, if anything."""
    if made is None:
        return "its signature does not say when it was made"
    if made > now + SKEW:
        return f"its signature is of the future, {made}"
    return f"its signature is too old, of {made}" if made < now - max_age else ""
