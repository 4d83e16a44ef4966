"""A real Kafka that asks who is there: by password, by token, and over TLS; all on this machine.

One broker has four listeners: an open one for itself and for whoever sets things up, and three as
surveys and GCN have them.  `Issuer` gives tokens as an OpenID provider does.
"""

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qs

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from nightwire.core.stack import Broker, free_port

USER, PASSWORD = "survey-reader", "by no means to be logged"
CLIENT_ID, CLIENT_SECRET = "a-client", "also secret"
AUDIENCE, ISSUER = "nightwire-test", "https://issuer.test"
SCRAM = "SCRAM-SHA-512"
SECURITY = "org.apache.kafka.common.security"
TOKEN_LIFE = 60
"""How long a token holds. [s]  librdkafka asks for the next one at four fifths."""


@dataclass(frozen=True)
class SecureBroker:
    """A running broker, and what a client of each listener needs.

    Attributes:
        broker: The process, to be killed and started again.
        plain: Address of the open listener.
        scram: Address of SASL/SCRAM without encryption; with `scram_client`.
        oauth: Address of SASL/OAUTHBEARER; with `oauth_client`.
        tls: Address of SASL/SCRAM over TLS; with `tls_client`.
        token_url: Where the issuer gives tokens.
        ca: The certificate authority that clients must trust.
    """

    broker: Broker
    plain: str
    scram: str
    oauth: str
    tls: str
    token_url: str
    ca: Path

    @property
    def scram_client(self) -> dict[str, str]:
        """librdkafka's properties for `scram`."""
        return _scram_client("SASL_PLAINTEXT")

    @property
    def tls_client(self) -> dict[str, str]:
        """librdkafka's properties for `tls`."""
        return _scram_client("SASL_SSL") | {"ssl.ca.location": str(self.ca)}

    @property
    def oauth_client(self) -> dict[str, str]:
        """librdkafka's properties for `oauth`."""
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.secret": CLIENT_SECRET,
            "sasl.oauthbearer.token.endpoint.url": self.token_url,
            "sasl.oauthbearer.scope": "read",
        }


def environment(client: Mapping[str, str], prefix: str = "KAFKA_") -> dict[str, str]:
    """Return librdkafka's properties as variables of the environment."""
    return {prefix + name.upper().replace(".", "_"): value for name, value in client.items()}


@contextmanager
def secure_broker(folder: Path, life: int = TOKEN_LIFE) -> Iterator[SecureBroker]:
    """Run a broker with its data in *folder*, and beside it an issuer of tokens that hold for
    *life* [s].
    """
    folder.mkdir(parents=True, exist_ok=True)
    ports = {name: free_port() for name in ("CLIENT", "SCRAM", "OAUTH", "TLS")}
    controller = free_port()
    ca = make_certificates(folder)
    with Issuer(folder / "jwks.json", life=life) as issuer:
        broker = Broker(
            folder / "kafka",
            port=ports["CLIENT"],
            controller=controller,
            properties=_listeners(ports, controller) | _mechanisms(folder),
            options=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://{folder}/jwks.json"],
        )
        broker.start()
        at = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        add_user(broker.bootstrap, USER, PASSWORD)
        try:
            yield SecureBroker(
                broker, at["CLIENT"], at["SCRAM"], at["OAUTH"], at["TLS"], issuer.token_url, ca
            )
        finally:
            broker.stop()


def add_user(bootstrap: str, name: str, password: str) -> None:
    """Give *name* a SCRAM password."""
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion(name, info, password.encode())
    client = AdminClient({"bootstrap.servers": bootstrap})
    for done in client.alter_user_scram_credentials([change]).values():
        done.result(30)


class Issuer:
    """An OpenID provider: it describes itself, and gives tokens; its public key is in a file too.

    Args:
        jwks: Where the public key goes.
        clients: Secrets by client, which is also the subject of its tokens.
        issuer: What tokens name as their issuer; None: where it can be asked on this machine.
        host: Name or address by which clients reach it.
        life: How long a token holds. [s]
    """

    def __init__(
        self,
        jwks: Path,
        clients: Mapping[str, str] = MappingProxyType({CLIENT_ID: CLIENT_SECRET}),
        issuer: str | None = ISSUER,
        host: str = "127.0.0.1",
        life: int = TOKEN_LIFE,
    ) -> None:
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        numbers = self._key.public_key().public_numbers()
        public = {"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256"}
        self.keys = {"keys": [public | {"n": _number(numbers.n), "e": _number(numbers.e)}]}
        jwks.write_text(json.dumps(self.keys))
        everywhere = "127.0.0.1" if host == "127.0.0.1" else ""  # clients may be elsewhere
        self._server = ThreadingHTTPServer((everywhere, 0), self._handler())
        port = self._server.server_port
        self.url, self.token_url = f"http://127.0.0.1:{port}", f"http://{host}:{port}/token"
        self.issuer = issuer or self.url
        self._clients, self._life = clients, life
        self.given = 0

    def __enter__(self) -> "Issuer":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def token(self, subject: str) -> str:
        """Return a signed token that names *subject*."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": AUDIENCE, "sub": subject, "scope": "read"}
        times = {"iat": now, "exp": now + self._life}
        signed = f"{_part({'alg': 'RS256', 'kid': 'k', 'typ': 'JWT'})}.{_part(claims | times)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
                client, secret = _credentials(self.headers.get("Authorization"), form)
                if issuer._clients.get(client) != secret:
                    return self.answer(401, {"error": "invalid_client"})
                issuer.given += 1
                token = {"access_token": issuer.token(client), "token_type": "Bearer"}
                return self.answer(200, token | {"expires_in": issuer._life})

            def do_GET(self) -> None:
                described = {"issuer": issuer.issuer, "jwks_uri": f"{issuer.url}/jwks"}
                pages: dict[str, Any] = {
                    "/.well-known/openid-configuration": described | {"token_endpoint": issuer.token_url},
                    "/jwks": issuer.keys,
                }
                self.answer(200 if self.path in pages else 404, pages.get(self.path, {}))

            def answer(self, status: int, said: Mapping[str, Any]) -> None:
                body = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler


def make_certificates(folder: Path) -> Path:
    """Write ``ca.pem``, and ``server.pem`` (key and chain) for 127.0.0.1; return the former."""
    ca_key, key = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
    ca = _certificate("nightwire test CA", ca_key, "nightwire test CA", ca_key, ca=True)
    server = _certificate("127.0.0.1", key, "nightwire test CA", ca_key, ca=False)
    pem = serialization.Encoding.PEM
    pkcs8, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    chain = [key.private_bytes(pem, pkcs8, plain), server.public_bytes(pem), ca.public_bytes(pem)]
    (folder / "server.pem").write_bytes(b"".join(chain))
    (folder / "ca.pem").write_bytes(ca.public_bytes(pem))
    ssl.create_default_context(cafile=str(folder / "ca.pem"))  # it is one that others can read
    return folder / "ca.pem"


def _certificate(
    subject: str, key: rsa.RSAPrivateKey, issuer: str, signer: rsa.RSAPrivateKey, *, ca: bool
) -> x509.Certificate:
    def name(text: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])

    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    if not ca:
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(subject)), x509.DNSName("localhost")])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())


def _listeners(ports: Mapping[str, int], controller: int) -> dict[str, object]:
    open_ones = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    return {
        "listeners": f"{open_ones},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": open_ones,
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT,SCRAM:SASL_PLAINTEXT,"
        "OAUTH:SASL_PLAINTEXT,TLS:SASL_SSL",
        "sasl.enabled.mechanisms": f"{SCRAM},OAUTHBEARER",
    }


def _mechanisms(folder: Path) -> dict[str, object]:
    oauth = "listener.name.oauth.oauthbearer"
    bearer = f"{SECURITY}.oauthbearer"
    login = f"{SECURITY}.scram.ScramLoginModule required;"
    keys = {"keystore": "server.pem", "truststore": "ca.pem"}
    tls = {
        f"listener.name.tls.ssl.{store}.{what}": value
        for store, file in keys.items()
        for what, value in (("type", "PEM"), ("location", folder / file))
    }
    return tls | {
        "listener.name.scram.sasl.enabled.mechanisms": SCRAM,
        "listener.name.tls.sasl.enabled.mechanisms": SCRAM,
        "listener.name.oauth.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.scram.scram-sha-512.sasl.jaas.config": login,
        "listener.name.tls.scram-sha-512.sasl.jaas.config": login,
        f"{oauth}.sasl.jaas.config": f"{bearer}.OAuthBearerLoginModule required;",
        f"{oauth}.sasl.server.callback.handler.class": f"{bearer}.OAuthBearerValidatorCallbackHandler",
        f"{oauth}.sasl.oauthbearer.jwks.endpoint.url": f"file://{folder}/jwks.json",
        f"{oauth}.sasl.oauthbearer.expected.audience": AUDIENCE,
        f"{oauth}.sasl.oauthbearer.expected.issuer": ISSUER,
    }


def _scram_client(protocol: str) -> dict[str, str]:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": SCRAM,
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }


def _credentials(header: str | None, form: Mapping[str, list[str]]) -> tuple[str, ...]:
    if header and header.startswith("Basic "):
        return tuple(base64.b64decode(header.removeprefix("Basic ")).decode().split(":", 1))
    return tuple(form.get(name, [""])[0] for name in ("client_id", "client_secret"))


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _part(claims: Mapping[str, Any]) -> str:
    return _base64(json.dumps(claims).encode())


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))
