"""A gateway as a process of its own, and a telescope that listens to it."""

import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from nightwire.core.kafka import read_to_end
from nightwire.core.stack import die_with_parent, free_port
from nightwire.gateway import FrameDecoder, Transport, encode_frame, read_transport
from nightwire.gateway.voevent.xml import parse_xml
from nightwire.gateway.vtp.session import encode_now
from nightwire.gateway.vtp.transport import is_transport
from nightwire.schemas.records import VOEVENT
from tests._serving import NIGHTWIRE
from tests._waiting import until

BIN = Path(sys.executable).parent


def listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


class Authority:
    """Signs certificates, each in one file with its key."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder, self._key = folder, ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._certificate(self._name, self._key.public_key(), authority=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(own.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> Path:
        """Return the file of a new certificate for 127.0.0.1, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        found = self._certificate(subject, key.public_key(), authority=False)
        secret = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        file = self._folder / f"{name}.pem"
        file.write_bytes(secret + found.public_bytes(serialization.Encoding.PEM))
        return file

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, authority: bool
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        place = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(place, critical=False)
            .sign(self._key, hashes.SHA256())
        )


@dataclass
class GatewayProcess:
    """``nightwire gateway serve`` on ports of its own."""

    kafka: str
    state: Path
    options: tuple[str, ...] = ()
    authors: int = field(default_factory=free_port)
    subscribers: int = field(default_factory=free_port)
    metrics: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> "GatewayProcess":
        self.state.mkdir(parents=True, exist_ok=True)
        where = ["--authors", f"127.0.0.1:{self.authors}", "--subscribers", f"127.0.0.1:{self.subscribers}"]
        command = [*NIGHTWIRE, "gateway", "serve", "--bootstrap", self.kafka, *where]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *command,
                    *("--state", str(self.state / "index"), "--metrics-port", str(self.metrics)),
                    *("--replay", "0s"),  # tests share a Kafka: nobody gets another test's events
                    *self.options,
                ],
                stderr=log,
                stdout=log,
            )
        until(lambda: self.ended() or listening(self.subscribers), "the gateway to listen")
        assert not self.ended(), self.log.read_text()
        return self

    @property
    def log(self) -> Path:
        return self.state / "gateway.log"

    def ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def ask(self, *frames: bytes, close: bool = False) -> list[Transport]:
        """Write raw bytes to the author port; return the answers until the gateway hangs up."""
        with socket.create_connection(("127.0.0.1", self.authors), timeout=60) as connection:
            connection.sendall(b"".join(frames))
            if close:
                connection.shutdown(socket.SHUT_WR)
            decoder = FrameDecoder()
            answers: list[Transport] = []
            while chunk := connection.recv(1 << 16):
                decoder.receive(chunk)
                answers += [read_transport(parse_xml(message)) for message in decoder]
        return answers

    def kill(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        assert self.process is not None
        self.process.terminate()
        return self.process.wait(60)

    def send(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """``nightwire send`` to this gateway."""
        command = [*NIGHTWIRE, "send", "--to", f"127.0.0.1:{self.authors}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=240, check=False)


@dataclass
class Telescope:
    """A VTP subscriber of a few lines, which collects what it is sent."""

    port: int
    filters: tuple[str, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    name: str = "ivo://test/telescope"
    acks: bool = True
    pause: threading.Event | None = None
    host: str = "127.0.0.1"
    tls: ssl.SSLContext | None = None
    events: list[bytes] = field(default_factory=list)
    heard: list[Transport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connection = socket.create_connection(("127.0.0.1", self.port), 60, (self.host, 0))
        if self.tls is not None:
            self.connection = self.tls.wrap_socket(self.connection, server_hostname="127.0.0.1")
        self._decoder = FrameDecoder(max_length=1 << 24)
        self._waiting: list[bytes] = []
        greeting = read_transport(parse_xml(self._next()))
        assert greeting.role == "authenticate"
        params = (*(("xpath-filter", text) for text in self.filters), *self.params)
        if params or self.name != Telescope.name:
            self.tell(Transport("authenticate", greeting.origin, self.name, params=params))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def tell(self, message: Transport) -> None:
        self.connection.sendall(encode_frame(encode_now(message)))

    def wait_for(self, count: int, timeout: float = 60.0) -> list[bytes]:
        until(lambda: len(self.events) >= count, lambda: f"event {count} of {len(self.events)}", timeout)
        return self.events

    def close(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)  # else it stays open while our thread reads
        if self.pause is None or self.pause.is_set():
            self._thread.join(10)  # else it reads on from whoever gets the descriptor next
        self.connection.close()

    def _listen(self) -> None:
        if self.pause is not None:
            self.pause.wait()
        try:
            while True:
                self._hear(self._next())
        except (OSError, EOFError):
            return

    def _hear(self, message: bytes) -> None:
        root = parse_xml(message)
        if is_transport(root):
            told = read_transport(root)
            self.heard.append(told)
            if told.role == "iamalive":
                self.tell(Transport("iamalive", told.origin, self.name))
            return
        self.events.append(message)
        if self.acks:
            self.ack(message)

    def ack(self, message: bytes) -> None:
        """Acknowledge an event."""
        self.tell(Transport("ack", str(parse_xml(message).get("ivorn")), self.name))

    def _next(self) -> bytes:
        while not self._waiting:
            chunk = self.connection.recv(1 << 16)
            if not chunk:
                raise EOFError
            self._decoder.receive(chunk)
            self._waiting += self._decoder
        return self._waiting.pop(0)


@pytest.fixture
def free_ports() -> Callable[[int], list[int]]:
    """Return a function that names ports that are free."""
    return lambda count: [free_port() for _ in range(count)]


@pytest.fixture
def ivorns() -> Callable[[int], list[str]]:
    """Return a function that makes ivorns which no other test uses."""
    mine = os.urandom(6).hex()
    return lambda count: [f"ivo://test.{mine}/stream#{number}" for number in range(count)]


@pytest.fixture
def gateway_on(tmp_path: Path) -> Iterator[Callable[..., GatewayProcess]]:
    """Return a function that starts gateways on a Kafka; they are ended afterwards."""
    started: list[GatewayProcess] = []

    def start(kafka: str, *options: str, name: str = "gateway", **ports: Any) -> GatewayProcess:
        started.append(GatewayProcess(kafka, tmp_path / name, options, **ports))
        return started[-1].start()

    yield start
    for one in started:
        if not one.ended():
            one.stop()  # so that its accounts are complete for the next test


@pytest.fixture
def start_gateway(gateway_on: Callable[..., GatewayProcess], kafka: str) -> Callable[..., GatewayProcess]:
    """Return a function that starts gateways on the shared Kafka."""
    return lambda *options, **named: gateway_on(kafka, *options, **named)


@pytest.fixture
def comet(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Return a function that starts Comet's daemon with options; its log is ``NAME.log``."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        *options: str, name: str = "comet", twistd: Sequence[str] = (str(BIN / "twistd"),)
    ) -> subprocess.Popen[bytes]:
        folder = tmp_path / name
        (folder / "db").mkdir(parents=True)
        command = [*twistd, "--nodaemon", "--pidfile=", "comet", "-v", f"--eventdb={folder}/db"]
        with (tmp_path / f"{name}.log").open("wb") as log:
            started.append(
                subprocess.Popen(
                    [*command, f"--local-ivo=ivo://test.comet/{name}", *options],
                    cwd=folder,
                    stdout=log,
                    stderr=log,
                    env={"PYTHONUTF8": "1", "PATH": str(BIN)},
                    preexec_fn=die_with_parent,  # noqa: PLW1509  (no threads before the fork matter here)
                )
            )
        return started[-1]

    yield start
    for one in started:
        one.kill()  # it has nothing to save, and one that is far behind does not hear anything else
        one.wait()


@pytest.fixture
def telescope() -> Iterator[Callable[..., Telescope]]:
    """Return a function that subscribes to a port."""
    open_ones: list[Telescope] = []

    def subscribe(port: int, **options: object) -> Telescope:
        open_ones.append(Telescope(port, **options))  # type: ignore[arg-type]
        return open_ones[-1]

    yield subscribe
    for one in open_ones:
        one.close()


@pytest.fixture(scope="session")
def nightwire() -> list[str]:
    """Return the words that begin a command."""
    return [*NIGHTWIRE]


@pytest.fixture(scope="session")
def metric() -> Callable[..., float]:
    """Return a function that reads one sample of a gateway's metrics page."""

    def read(gateway: GatewayProcess, name: str) -> float:
        page = httpx.get(f"http://127.0.0.1:{gateway.metrics}/metrics").text
        return float(next(line.split()[-1] for line in page.splitlines() if line.startswith(name + " ")))

    return read


@pytest.fixture
def logged(kafka: str) -> Callable[[], dict[str, list[bytes]]]:
    """Return a function that reads `voevents` afresh: the documents of each ivorn."""

    def read() -> dict[str, list[bytes]]:
        found: dict[str, list[bytes]] = {}
        for message in read_to_end(kafka, ["voevents"]):
            record = VOEVENT.decode(message.value() or b"")
            found.setdefault(record["ivorn"], []).append(record["raw"])
        return found

    return read


@pytest.fixture
def authority(tmp_path: Path) -> Callable[[str], Authority]:
    """Return a function that makes an authority that signs certificates."""
    return lambda name: Authority(tmp_path, name)


@pytest.fixture
def certificates(authority: Callable[[str], Authority]) -> tuple[Path, Path]:
    """Return the files of an authority, and of a gateway's certificate by it."""
    signs = authority("authority")
    return signs.file, signs.issue("gateway")
