"""An authority of certificates, and what it signs: keys on P-256, names in the certificate."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE = timedelta(days=3650)
LIFE = timedelta(days=397)
"""How long a certificate holds: some clients refuse those that were made for longer."""
EARLY = timedelta(hours=1)
"""It holds from so long ago on: the clocks of others are not ours."""

HOST = re.compile(r"(?=.{1,253}$)(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*")
"""Name of a machine."""


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def private_pem(self) -> bytes:
        """Return the key, as Kafka reads it too: PKCS8, without a password."""
        pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
        return self.key.private_bytes(pem, pkcs8, serialization.NoEncryption())

    def public_pem(self) -> bytes:
        """Return the certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)


def new_authority(name: str) -> Identity:
    """Return an authority that is called *name*, and signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_named(name), key, AUTHORITY_LIFE).issuer_name(_named(name))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    return Identity(builder.sign(key, hashes.SHA256()), key)


def server_identity(authority: Identity, hosts: Sequence[str]) -> Identity:
    """Return an identity of a server that is reached by *hosts*, names or addresses.

    Raises:
        ValueError: One is neither; the message names it.
    """
    names = x509.SubjectAlternativeName([_alternative(host) for host in hosts])
    return _signed(authority, hosts[0], ExtendedKeyUsageOID.SERVER_AUTH, names)


def client_identity(authority: Identity, name: str) -> Identity:
    """Return an identity by which *name* proves who it is to our servers."""
    names = x509.SubjectAlternativeName([x509.DNSName(name)])
    return _signed(authority, name, ExtendedKeyUsageOID.CLIENT_AUTH, names)


def read_identity(pem: bytes) -> Identity:
    """Return the identity whose key and certificate are in *pem*.

    Raises:
        ValueError: They are not there, or of another kind.
    """
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("its key is of another kind")  # noqa: TRY004  (a file is wrong, no type)
    return Identity(x509.load_pem_x509_certificate(pem), key)


def hosts_of(certificate: x509.Certificate) -> list[str]:
    """Return the names and addresses for which *certificate* holds."""
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(one.value) for one in found]


def _signed(
    authority: Identity, name: str, purpose: x509.ObjectIdentifier, names: x509.SubjectAlternativeName
) -> Identity:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    builder = (
        _builder(_named(name), key, LIFE).issuer_name(issuer.subject).add_extension(names, critical=False)
    )
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = builder.add_extension(signer, critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    return Identity(builder.sign(authority.key, hashes.SHA256()), key)


def _builder(subject: x509.Name, key: ec.EllipticCurvePrivateKey, life: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    public = key.public_key()
    return (
        x509.CertificateBuilder(subject_name=subject, public_key=public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    if not HOST.fullmatch(host):
        raise ValueError(f"{host!r} is neither the name nor the address of a machine")
    return x509.DNSName(host)
