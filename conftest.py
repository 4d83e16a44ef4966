"""What tests of all rooms share: a real Kafka, librdkafka's mock cluster, our registry, the real
data.

A test whose tool is missing is not collected, and the run's last lines say so.  With
``NIGHTWIRE_TESTS=all`` a missing tool is a failure; missing data is not.
"""

import gc
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
from confluent_kafka import Producer
from platformdirs import user_cache_path

from nightwire.core.kafka import ensure_topics
from nightwire.core.stack import Broker, free_port
from nightwire.schemas.avro.native_engine import available
from nightwire.schemas.topics import TopicSettings, settings
from tests._serving import verb

ROOT = Path(__file__).parent
DATA = Path(os.environ.get("NIGHTWIRE_DATA", ROOT.parent / "shared" / "data"))


def _apicurio() -> bool:
    return any((user_cache_path("nightwire") / "apicurio").glob("*"))


def _clients() -> bool:
    return all(importlib.util.find_spec(name) for name in ("gcn_kafka", "hop", "lsst", "gcn"))


PROMETHEUS = ("prometheus", "promtool", "prometheus-alertmanager", "amtool", "prometheus-node-exporter")
"""Programs of Debian's packages prometheus, prometheus-alertmanager and
prometheus-node-exporter."""

PICTURES = ROOT / "monitoring" / "pictures" / "build" / "page.js"

ASSETS = (
    ROOT / "portal" / "src" / "nightwire" / "portal" / "static" / "vendor" / "aladin.js",
    ROOT / "portal" / "assets" / "node_modules" / "axe-core" / "axe.min.js",
)

TOOLS: dict[str, tuple[Callable[[], bool], str]] = {
    "native": (available, "make native"),
    "comet": (lambda: importlib.util.find_spec("comet") is not None, "make setup"),
    "spark": (lambda: importlib.util.find_spec("pyspark") is not None, "make setup"),
    "interop": (_clients, "make setup"),
    "kcat": (lambda: shutil.which("kcat") is not None, "make test-tools"),
    "chromium": (lambda: shutil.which("chromium") is not None, "make test-tools"),
    "prometheus": (lambda: all(map(shutil.which, PROMETHEUS)), "make test-tools"),
    "apicurio": (_apicurio, "make test-tools"),
    "s3": (lambda: shutil.which("moto_server") is not None, "make setup"),
    "pictures": (PICTURES.exists, "npm ci and npm run build in monitoring/pictures"),
    "axe": (lambda: all(one.is_file() for one in ASSETS), "make portal-assets"),
    "netns": (
        lambda: os.geteuid() == 0 and shutil.which("ip") is not None,
        "apt-get install iproute2, as root",
    ),
    "lan": (
        lambda: os.geteuid() == 0 and shutil.which("ip") is not None and shutil.which("iptables") is not None,
        "apt-get install iproute2 iptables, as root",
    ),
    "norm": (lambda: find_library("norm") is not None, "make test-tools"),
    "docker": (lambda: os.environ.get("NIGHTWIRE_DOCKER") == "1", "make test-compose"),
    "data": (DATA.is_dir, "NIGHTWIRE_DATA=folder"),
    "proof": (lambda: os.environ.get("NIGHTWIRE_PROOFS") == "1", "NIGHTWIRE_PROOFS=1 make test"),
}
"""Marker: whether its tool is here, and what brings it."""

ELSEWHERE = {"axe", "docker", "data", "pictures", "proof"}
"""Markers whose absence is no failure: they have a command of their own, or want what is not
ours (npm's packages come by `make test-tools`, where npm and its registry answer)."""
if shutil.which("cargo") is None:
    ELSEWHERE.add("native")  # without Rust there is nothing to build it with

if os.geteuid() != 0:
    ELSEWHERE |= {"netns", "lan"}  # only root makes network namespaces

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# a test starts many a Python, each of which would compile a thousand modules again: half of its
# start

os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
# a Kafka or a Spark that lives for a minute starts in half the time with Java's quick compiler
# alone

usual = os.environ.get("NIGHTWIRE_PROOFS") != "1"
hypothesis.settings.register_profile(
    "nightwire", deadline=None, derandomize=usual, max_examples=50 if usual else 100
)
hypothesis.settings.load_profile("nightwire")
# the same examples each day, whatever else the machine does; proofs look further

PAGES = httpx.Client(limits=httpx.Limits(max_keepalive_connections=0))
"""Asks processes of this machine for a page, each time by a connection of its own.

What polls uses it: `httpx.get` reads all certificates first, 30 ms of CPU each time.
"""

LONGEST = (
    "tests/test_stack.py",
    "filters/tests/spark/test_engine.py",
    "tests/test_scram_stack.py",
    "filters/tests/engine/test_local.py",
    "producer/tests/ingest/test_kafka.py",
    "producer/tests/test_killed.py",
    "producer/tests/spool/test_spooling.py",
    "producer/tests/ingest/test_killed.py",
    "filters/tests/spark/test_alert_source.py",
    "consumers/tests/test_light.py",
)
"""Files of a minute and more, which begin first: none of them is left for the end, when the other
processes have nothing to do."""

left_out: dict[str, int] = {}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect the tests without looking for garbage, then only among what is not of theirs."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests whose tool is missing, and put the longest files first."""
    rank = {ROOT / path: n for n, path in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))
    for marker, (present, brings) in TOOLS.items():
        chosen = [item for item in items if item.get_closest_marker(marker)]
        if not chosen or present():
            continue
        if os.environ.get("NIGHTWIRE_TESTS") == "all" and marker not in ELSEWHERE:
            raise pytest.UsageError(f"{len(chosen)} tests need {marker}, which `{brings}` brings")
        left_out[marker] = len(chosen)
        config.hook.pytest_deselected(items=chosen)
        items[:] = [item for item in items if item not in chosen]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was left out."""
    for marker, count in left_out.items():
        terminalreporter.write_line(
            f"left out: {count} tests marked {marker}; `{TOOLS[marker][1]}` brings them"
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that prints the summary, where several run the tests."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = left_out


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return one process more than there are cores, for many tests wait for a Kafka that comes
    or goes.
    """
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take in what a worker left out; each of them looked at all tests."""
    left_out.update(getattr(node, "workeroutput", {}).get("left_out", {}))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Return the event loop that tests run in that are coroutines."""
    return "asyncio"


def mock_cluster(brokers: int = 1) -> tuple[Producer, str]:
    """Return a client whose mock cluster (librdkafka's) lives as long as it, and the addresses."""
    host = Producer({"test.mock.num.brokers": brokers, "log_level": 0})
    found = host.list_topics(timeout=60).brokers.values()
    return host, ",".join(f"{broker.host}:{broker.port}" for broker in found)


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Yield the address of librdkafka's mock cluster: real clients, real protocol, no Java.

    Each module has one of its own: what one leaves in `alerts.sim` is not another's.
    """
    host, addresses = mock_cluster(3)
    yield addresses
    del host


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Yield a real one-broker Kafka, whose groups may notice in a second who joined or died."""
    quick = {
        "group.min.session.timeout.ms": 1000,
        "group.consumer.min.heartbeat.interval.ms": 300,
        "group.consumer.heartbeat.interval.ms": 300,
    }
    one = Broker(tmp_path_factory.mktemp("kafka"), port=free_port(), controller=free_port(), properties=quick)
    one.start()
    yield one
    one.stop()


@pytest.fixture(scope="session")
def kafka(broker: Broker) -> str:
    """Return the address of a real Kafka that has the topics which the stack makes."""
    names = ["visits", "voevents", "filters", "accounts", "dead-letters", "_schemas"]
    surveys = [f"alerts.{survey}" for survey in ("sim", "lsst", "ztf")]
    ensure_topics(broker.bootstrap, [settings(name) for name in names + surveys])
    return broker.bootstrap


@pytest.fixture
def fresh_broker(tmp_path: Path) -> Iterator[Broker]:
    """Yield a real Kafka of this test's own, for tests that kill it or count all it holds."""
    one = Broker(tmp_path / "kafka", port=free_port(), controller=free_port())
    one.start()
    yield one
    one.kill()  # nobody reads its data again; to leave in order takes it a second


@pytest.fixture
def fresh_topic(kafka: str, request: pytest.FixtureRequest) -> Callable[..., str]:
    """Return a function that makes a topic of this test's own on the real Kafka."""

    def make(name: str = "test", partitions: int = 1) -> str:
        topic = f"{name}.{os.urandom(4).hex()}"
        ensure_topics(kafka, [TopicSettings(topic, partitions, {"max.message.bytes": str(4 << 20)})])
        return topic

    return make


@pytest.fixture(scope="session")
def serve_registry(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., AbstractContextManager[str]]:
    """Return a function that runs our schema registry on a Kafka, for a while, and gives its
    URL.
    """

    @contextmanager
    def serve(bootstrap: str, port: int = 0) -> Iterator[str]:
        port, log = port or free_port(), tmp_path_factory.mktemp("registry") / "log"
        with verb(log, "schema", "serve", "--bootstrap", bootstrap, "--port", str(port), port=port):
            yield f"http://127.0.0.1:{port}"

    return serve


@pytest.fixture(scope="session")
def registry_url(kafka: str, serve_registry: Callable[[str], AbstractContextManager[str]]) -> Iterator[str]:
    """Yield the URL of our schema registry, running on the real Kafka."""
    with serve_registry(kafka) as url:
        yield url


@pytest.fixture(scope="session")
def data() -> Path:
    """Return the folder of real alerts and VOEvents."""
    return DATA
