"""The engine on a Spark of several processes: a standalone master with two workers, all on this
machine.
"""

import json
import os
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest

from filters.tests.helpers.accounted import close, judged
from filters.tests.helpers.killing import FILTERS, LONG, ZYGOTE, Ledger, Night, has
from nightwire.core.runtime import java_home
from nightwire.core.stack import die_with_parent, free_port

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.proof,
    pytest.mark.timeout(900),
]

Site = Any
HOME = Path(pyspark.__file__).parent
HEAP = "512m"


@dataclass(frozen=True)
class Cluster:
    """A master, its page, and its workers."""

    master: str
    page: str
    workers: tuple["subprocess.Popen[bytes]", ...]

    def alive(self) -> int:
        """Return how many workers the master knows."""
        try:
            with urllib.request.urlopen(f"{self.page}/json/", timeout=5) as said:  # noqa: S310 - our own
                return int(json.load(said)["aliveworkers"])
        except OSError:
            return 0

    def executors(self) -> list[psutil.Process]:
        """Return the processes in which Spark's tasks run."""
        return [
            child
            for worker in self.workers
            for child in psutil.Process(worker.pid).children(recursive=True)
            if has(child, "CoarseGrainedExecutorBackend")
        ]


def deploy(kind: str, folder: Path, *words: str) -> "subprocess.Popen[bytes]":
    """Start a process of Spark's standalone cluster."""
    command = [
        f"{java_home()}/bin/java",
        "--add-modules=jdk.incubator.vector",
        "-Xmx256m",
        "-cp",
        f"{HOME}/jars/*",
    ]
    env = os.environ | {"SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / f"{kind}.log").open("ab") as log:
        return subprocess.Popen(
            [*command, f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", *words],
            stdout=log, stderr=log, env=env, cwd=folder, preexec_fn=die_with_parent,  # noqa: PLW1509
        )  # fmt: skip


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, until: Callable[..., Any]) -> Iterator[Cluster]:
    """Yield a cluster of two workers with a core each."""
    folder, port, page = tmp_path_factory.mktemp("spark"), free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:

        def start(kind: str, *words: str) -> "subprocess.Popen[bytes]":
            child = deploy(kind, folder, *words)
            running.callback(child.wait, 30)
            running.callback(child.terminate)
            return child

        start("master.Master", "--port", str(port), "--webui-port", str(page))
        size = ("--cores", "1", "--memory", HEAP, "--webui-port", str(free_port()))
        workers = tuple(
            start("worker.Worker", *size, "--work-dir", str(folder / f"{number}"), master)
            for number in (1, 2)
        )
        one = Cluster(master, f"http://127.0.0.1:{page}", workers)
        until(lambda: one.alive() == len(workers), 120, (folder / "worker.Worker.log").read_text)
        yield one


@pytest.fixture(scope="module")
def night(
    site: Site, cluster: Cluster, encode: Callable[..., bytes], until: Callable[..., Any]
) -> Iterator[Night]:
    """Yield a night that the cluster judges."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        environment.setenv("NIGHTWIRE_SPARK_MASTER", cluster.master)  # as `make bench` is given one
        site.start("--memory", HEAP, "--deadline", "3600")
        for name, (code, *options) in FILTERS.items():
            done = site.submit(name, code, "--survey", "sim", *options)
            assert done.returncode == 0, done.stderr
        yield Night(site, encode, until, Ledger(site.folder / "state"), 0)


def test_two_executors_share_the_work(night: Night, cluster: Cluster) -> None:
    visit = night.feed()
    close(night.site, visit, "alerts.sim")
    night.settle(visit, lambda: judged(night.site, "alerts.sim"))
    night.check(visit)
    found = cluster.executors()
    assert len(found) == 2
    assert all(any(has(one, ZYGOTE) for one in child.children(recursive=True)) for child in found)


@pytest.mark.parametrize("whose", ["executor", "its python"])
def test_one_dies_in_mid_visit_and_it_ends_as_if_it_had_not(
    night: Night, cluster: Cluster, whose: str
) -> None:
    visit = night.feed()
    executors = night.until(lambda: [one for one in cluster.executors() if one.children()], 60, night.said)
    (executors[0] if whose == "executor" else executors[0].children()[0]).kill()
    close(night.site, visit, "alerts.sim")
    night.settle(visit, lambda: judged(night.site, "alerts.sim"))
    night.check(visit)


def test_the_long_visit_ends_with_its_best_and_its_first(night: Night, cluster: Cluster) -> None:
    close(night.site, LONG, "alerts.sim")
    night.settle(LONG, lambda: judged(night.site, "alerts.sim"))
    night.check(LONG)
    night.check_decisions()
    assert len(cluster.executors()) == 2
    assert night.site.stop() == 0
