"""OpenPGP keys that are known.  No files, no clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pysequoia import Cert, Sig
from pysequoia.packet import Packet, PacketPile, SignatureType, Tag

from nightwire.gateway.signing.trust_policy import Signer


class KeyringError(Exception):
    """A file holds no OpenPGP keys; the message says why."""


@dataclass(frozen=True)
class _Key:
    cert: Cert
    signer: Signer
    revoked: bool
    expires: datetime | None


class Keyring:
    """The keys that are known.

    Args:
        certs: Their certificates; several of one key are taken together.
        revocations: Signatures that revoke keys, each beside or before the key that it is of.
    """

    def __init__(self, certs: Iterable[Cert] = (), revocations: Iterable[Packet] = ()) -> None:
        merged: dict[str, Cert] = {}
        for cert in certs:
            known = merged.get(cert.fingerprint)
            merged[cert.fingerprint] = cert if known is None else known.merge(cert)
        for revocation in revocations:
            _revoke(merged, revocation)
        self._keys: dict[str, _Key] = {}
        for cert in merged.values():
            key = _key(cert)
            self._keys.update(dict.fromkeys(_handles(cert), key))
        self._size = len(merged)

    def __len__(self) -> int:
        return self._size

    def find(self, signature: Sig) -> _Key | None:
        """Return the key that *signature* says it was made by."""
        handle = signature.issuer_fingerprint or signature.issuer_key_id or ""
        return self._keys.get(handle.lower())


def read_keys(content: bytes) -> tuple[list[Cert], list[Packet]]:
    """Return the certificates in *content*, armored or not, and its separate revocations.

    Raises:
        KeyringError: There are neither, or a secret key is among them.
    """
    try:
        packets: Sequence[Packet] = list(PacketPile.from_bytes(content))
        alone = all(packet.tag == Tag.Signature for packet in packets)
        certs = [] if alone else Cert.split_bytes(content)
    except Exception as error:
        raise KeyringError(f"it holds no OpenPGP keys: {first_line(error)}") from error
    if any(packet.tag in (Tag.SecretKey, Tag.SecretSubkey) for packet in packets):
        raise KeyringError("it holds a secret key; public ones belong here")
    return certs, [one for one in packets if alone and one.signature_type == SignatureType.KeyRevocation]


def first_line(error: Exception) -> str:
    """Return what the library says, without the stack that it may add."""
    return (str(error).splitlines() or [""])[0]


def _key(cert: Cert) -> _Key:
    signer = Signer(cert.fingerprint.lower(), tuple(str(name) for name in cert.user_ids))
    return _Key(cert, signer, cert.is_revoked, cert.expiration)


def _handles(cert: Cert) -> list[str]:
    """Return the fingerprints and key ids of *cert* and its subkeys."""
    found = []
    for packet in PacketPile.from_bytes(bytes(cert)):
        if packet.tag in (Tag.PublicKey, Tag.PublicSubkey):
            found += [handle.lower() for handle in (packet.fingerprint, packet.key_id) if handle]
    return found


def _revoke(certs: dict[str, Cert], revocation: Packet) -> None:
    handle = (revocation.issuer_fingerprint or revocation.issuer_key_id or "").lower()
    for fingerprint, cert in certs.items():
        if handle in _handles(cert):
            certs[fingerprint] = Cert.from_bytes(bytes(cert) + bytes(revocation))
