"""The processes of the embedded stack: a command line and a page of health each."""

import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from nightwire.core.tls.public import ANYWHERE, Public


@dataclass(frozen=True)
class Service:
    """A child process.

    Attributes:
        name: What people call it.
        command: Its command line.
        metrics: Port of its metrics page, which also tells its health; None where it has none.
        ready_timeout: Longest time until it is healthy after its start. [s]
        stop_timeout: Longest time for a clean stop. [s]
        environment: Variables of its own.
        health: Where its page tells its health.
    """

    name: str
    command: Sequence[str]
    metrics: int | None = None
    ready_timeout: float = 120.0
    stop_timeout: float = 15.0
    environment: Mapping[str, str] = field(default_factory=dict)
    health: str = "health"


@dataclass(frozen=True)
class Stream:
    """A persistent test stream: *alerts* of a simulated survey every *interval* (``39s``)."""

    survey: str
    alerts: int
    interval: str


NODE_EXPORTER = "prometheus-node-exporter"
"""Debian's name of it."""
COLLECTORS = ("cpu", "diskstats", "filefd", "filesystem", "loadavg", "meminfo", "netdev", "stat", "time")
"""What of the machine is watched."""
PROCESSES = ("schema_registry", "directory", "gateway", "filters", "exporter")
PORTAL = ("portal",)
"""What people look at, where they do."""
ARCHIVE = ("archive",)
"""What keeps the past, where its packages are."""
FLOWS = ("flows",)
"""What runs everybody's flows."""
GUARDED = ("users",)
"""What runs beside them where Kafka asks who is there."""
TOKEN_KEY = "tokens.key.pem"  # noqa: S105  (a file's name)
"""File of the key by which the site signs tokens, in the state folder."""
PORTS = (
    "kafka", "controller", "schema_registry", "directory", "vtp_authors", "vtp_subscribers", "prometheus",
)  # fmt: skip
PUBLIC_PORTS = (
    "public_kafka", "public_schema_registry", "public_users", "public_directory",
    "public_vtp_authors", "public_vtp_subscribers",
)  # fmt: skip
"""What other machines reach."""


def port_names(
    stream: Stream | None,
    *,
    jmx: bool = False,
    public: bool = False,
    guarded: bool = False,
    archive: bool = False,
    portal: bool = True,
    flows: bool = True,
) -> list[str]:
    """Return the names of all ports that the stack listens on.

    Args:
        stream: The test stream, if there is one.
        jmx: Whether Kafka tells of itself.
        public: Whether other machines reach us.
        guarded: Whether Kafka asks who is there.
        archive: Whether alerts are archived.
        portal: Whether there are pages to look at.
        flows: Whether flows run.
    """
    more = {"stream": stream is not None, "kafka": jmx, "node": has_node_exporter()}
    chosen = [*(ARCHIVE if archive else ()), *(PORTAL if portal else ())]
    pages = [
        *PROCESSES,
        *chosen,
        *(FLOWS if flows else ()),
        *(GUARDED if guarded else ()),
        *(name for name, wanted in more.items() if wanted),
    ]
    doors = [*chosen, *(("tokens", *GUARDED) if guarded else ()), *(PUBLIC_PORTS if public else ())]
    doors += [f"public_{name}" for name in chosen] if public else []
    return [*PORTS, *doors, *(f"{name}_metrics" for name in pages)]


def services(
    folder: Path,
    ports: Mapping[str, int],
    *,
    remotes: Sequence[str] = (),
    feeds: Sequence[str] = (),
    light: bool = False,
    public: Public | None = None,
) -> list[Service]:
    """Return the processes beside Kafka, in the order of their start.

    Args:
        folder: State of the stack.
        ports: Port of each name in `port_names`.
        remotes: VTP brokers that the gateway subscribes to.
        feeds: Filter topics that the gateway gives to VTP subscribers.
        light: Run the filters without Spark.
        public: What other machines reach; None for nothing.
    """
    kafka = f"127.0.0.1:{ports['kafka']}"
    registry = f"http://127.0.0.1:{ports['schema_registry']}"
    where = ["--bootstrap", kafka, "--registry", registry]
    past = {"NIGHTWIRE_ARCHIVE_HTTP": f"http://127.0.0.1:{ports['archive']}"} if "archive" in ports else {}

    def verb(name: str, *words: str, **more: object) -> Service:
        page = ports[f"{name}_metrics"]
        command = [*nightwire(*words), "--metrics-port", str(page)]
        return Service(name, command, metrics=page, **more)  # type: ignore[arg-type]

    gateway = ["gateway", "serve", *where, "--state", str(folder / "gateway")]
    gateway += ["--authors", f"127.0.0.1:{ports['vtp_authors']}"]
    gateway += ["--subscribers", f"127.0.0.1:{ports['vtp_subscribers']}"]
    gateway += [word for remote in remotes for word in ("--remote", remote)]
    gateway += [word for feed in feeds for word in ("--feed", feed)]
    gateway += _vtp_doors(public, ports) if public else []
    filters = ["filter", "run", *where, "--state", str(folder / "filters"), *(["--light"] if light else [])]
    return [
        verb(
            "schema_registry",
            "schema",
            "serve",
            "--bootstrap",
            kafka,
            "--port",
            str(ports["schema_registry"]),
            *(["--tokens", f"127.0.0.1:{ports['tokens']}"] if "tokens" in ports else []),
            *(_https_door("schema_registry", public, ports) if public else ()),
        ),
        *([verb("users", *_users(folder, kafka, ports, public))] if "users" in ports else []),
        verb("directory", *_directory(where, ports, public), environment=past),
        verb("gateway", *gateway, stop_timeout=60.0),
        verb("filters", *filters, stop_timeout=30.0, environment=past),
        *([verb("portal", *_portal(where, ports, public))] if "portal" in ports else []),
        verb("exporter", "exporter", "--bootstrap", kafka),
        *(
            [verb("archive", *_archive(folder, where, ports, public), stop_timeout=60.0)]
            if "archive" in ports
            else []
        ),
        *(
            [verb("flows", *_flows(where), stop_timeout=45.0, environment=past)]
            if "flows_metrics" in ports
            else []
        ),
        *_node_exporter(ports),
        *_prometheus(folder, ports),
    ]


def _users(folder: Path, kafka: str, ports: Mapping[str, int], public: Public | None) -> list[str]:
    """Return the words of the process at which users take their passwords and tokens."""
    words = ["user", "serve", "--bootstrap", kafka, "--port", str(ports["users"])]
    words += ["--token-key", str(folder / TOKEN_KEY)]
    return words + (_https_door("users", public, ports) if public else [])


def _directory(where: Sequence[str], ports: Mapping[str, int], public: Public | None) -> list[str]:
    """Return the words of the directory, which also watches who cannot register himself."""
    words = ["directory", "serve", *where, "--port", str(ports["directory"])]
    pages = {"schema_registry": "schema_registry", "kafka": "kafka:kafka", "node": "node_exporter:node"}
    for page, name in pages.items():
        if (port := ports.get(f"{page}_metrics")) is not None:
            words += ["--watch", f"{name}=127.0.0.1:{port}"]
    words += ["--tokens", f"127.0.0.1:{ports['tokens']}"] if "tokens" in ports else []
    return words + (_https_door("directory", public, ports) if public else [])


def _portal(where: Sequence[str], ports: Mapping[str, int], public: Public | None) -> list[str]:
    """Return the words of the portal."""
    words = ["portal", "serve", *where, "--port", str(ports["portal"])]
    words += ["--directory", f"http://127.0.0.1:{ports['directory']}"]
    words += ["--archive", f"http://127.0.0.1:{ports['archive']}"] if "archive" in ports else []
    words += ["--tokens", f"127.0.0.1:{ports['tokens']}"] if "tokens" in ports else []
    return words + (_https_door("portal", public, ports) if public else [])


def _archive(
    folder: Path, where: Sequence[str], ports: Mapping[str, int], public: Public | None
) -> list[str]:
    """Return the words of the process that keeps the past."""
    words = ["archive", "serve", *where, "--archive", str(folder / "archive")]
    words += ["--port", str(ports["archive"])]
    words += ["--tokens", f"127.0.0.1:{ports['tokens']}"] if "tokens" in ports else []
    return words + (_https_door("archive", public, ports) if public else [])


def _flows(where: Sequence[str]) -> list[str]:
    """Return the words of the worker that runs flows."""
    return ["flow", "serve", *where, "--name", "flows"]


def _https_door(name: str, public: Public, ports: Mapping[str, int]) -> list[str]:
    """Return the options by which other machines reach a process by HTTPS."""
    words = ["--tls", f"{ANYWHERE}:{ports[f'public_{name}']}"]
    return [*words, "--tls-cert", str(public.certificate), "--tls-key", str(public.key)]


def _vtp_doors(public: Public, ports: Mapping[str, int]) -> list[str]:
    """Return the options by which the gateway lets in whoever shows a certificate of the site's."""
    words = ["--tls-cert", str(public.certificate), "--tls-key", str(public.key)]
    words += ["--tls-client-ca", str(public.client_ca)]
    for role in ("authors", "subscribers"):
        words += [f"--tls-{role}", f"{ANYWHERE}:{ports[f'public_vtp_{role}']}"]
    return words


def stream_service(stream: Stream, ports: Mapping[str, int]) -> Service:
    """Return the process that plays visit after visit."""
    words = ["simulate", "--visits", "0", "--survey", stream.survey, "--alerts", str(stream.alerts)]
    words += ["--interval", stream.interval, "--bootstrap", f"127.0.0.1:{ports['kafka']}"]
    words += ["--registry", f"http://127.0.0.1:{ports['schema_registry']}"]
    page = ports["stream_metrics"]
    command = [*nightwire(*words), "--metrics-port", str(page)]
    return Service("stream", command, metrics=page, stop_timeout=60.0)


def nightwire(*words: str) -> list[str]:
    """Return the command line of a verb, run by this Python."""
    return [sys.executable, "-m", "nightwire.core.cli", *words]


def has_archive() -> bool:
    """Whether the packages of the archive are installed."""
    return all(map(find_spec, ("cdshealpix", "deltalake", "duckdb", "fsspec")))


def has_prometheus() -> bool:
    """Whether Prometheus is installed on this machine."""
    return shutil.which("prometheus") is not None


def has_node_exporter() -> bool:
    """Whether this machine can tell of itself."""
    return shutil.which(NODE_EXPORTER) is not None


def _node_exporter(ports: Mapping[str, int]) -> list[Service]:
    if (page := ports.get("node_metrics")) is None:
        return []
    command = [NODE_EXPORTER, f"--web.listen-address=127.0.0.1:{page}", "--log.level=warn"]
    command += ["--collector.disable-defaults", *(f"--collector.{name}" for name in COLLECTORS)]
    return [Service("node_exporter", command, metrics=page, health="")]


def _prometheus(folder: Path, ports: Mapping[str, int]) -> list[Service]:
    if not has_prometheus():
        return []
    words = ["prometheus", "--state", str(folder / "prometheus"), "--port", str(ports["prometheus"])]
    words += ["--directory", f"http://127.0.0.1:{ports['directory']}"]
    return [Service("prometheus", nightwire(*words), metrics=None)]
