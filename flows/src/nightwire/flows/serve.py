"""A worker as a process: it follows the topic `flows`, says what is wrong, and shows metrics."""

import logging
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from nightwire.core.access import read_rights
from nightwire.core.kafka import cluster_id, ensure_topics, enter, login
from nightwire.core.presence import metrics_at, registered
from nightwire.core.runtime import MetricsPage, setup_logging, stopping
from nightwire.flows.engine import PartRunner
from nightwire.flows.log import FlowFollower
from nightwire.flows.problems import ProblemReporter
from nightwire.flows.terminals import Limits
from nightwire.flows.terminals.mail import ALLOWED
from nightwire.flows.worker import Worker, WorkerSettings
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.topics import FLOW_PROBLEMS, FLOWS, settings

log = logging.getLogger("nightwire.flows")

LOOK = 0.2
"""Longest time until a change is seen. [s]"""


class WorkerMetrics(Collector):
    """What a worker says of its flows; what they read and wrote, their accounts say."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics as they are now."""
        problem = GaugeMetricFamily(
            "nightwire_flows_problem", "1: it does not run as it should.", labels=["flow"]
        )
        retries = CounterMetricFamily(
            "nightwire_flows_retries",
            "Attempts at a terminal that failed and were made again.",
            labels=["flow"],
        )
        early = CounterMetricFamily(
            "nightwire_flows_closed_early",
            "Objects that a window or a join let go for want of room.",
            labels=["flow", "stone"],
        )
        for flow, one in self._worker.hosted.copy().items():
            parts = [*one.parts.copy().values()]
            if not (parts or one.problem):
                continue
            problem.add_metric([flow], bool(one.problem) or any(part.problem for part in parts))
            retries.add_metric([flow], sum(part.retries for part in parts))
            for part in parts:
                for name, runner in part.plan.stateful.items() if isinstance(part, PartRunner) else ():
                    early.add_metric([flow, name], runner.evicted)
        yield from (problem, retries, early)


def _page(worker: Worker, port: int) -> MetricsPage:
    registry = CollectorRegistry()
    registry.register(WorkerMetrics(worker))
    page = MetricsPage(registry, port=port)
    page.start()
    return page


def default_name() -> str:
    """Return the name of a worker that nobody named."""
    return f"{socket.gethostname()}-{os.getpid()}"


def told_of_limits(limits: Limits) -> dict[str, Any]:
    """Return what all may know of where a worker sends to: no address of a person."""
    named = (one.strip().lower() for one in os.environ.get(ALLOWED, "").split(","))
    return {"inside": limits.inside, "mail": sorted(one for one in named if one and "@" not in one)}


def serve(asked: WorkerSettings) -> None:
    """Run flows until a signal.

    Raises:
        KafkaException: Kafka refuses.
    """
    setup_logging("nightwire.flows")
    pa.array([0])  # its first array makes Arrow import pandas: not within the first batch
    kafka = enter(asked.endpoints.kafka)
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        ensure_topics(kafka, [settings(FLOWS)])
        with suppress(KafkaException):  # an older Kafka's rights may lack it
            ensure_topics(kafka, [settings(FLOW_PROBLEMS)])
        url, which = asked.endpoints.schema_registry, partial(cluster_id, kafka)
        registry = exits.enter_context(SchemaRegistry(url, cluster_id=which, login=login(kafka)))
        who = f"flows {asked.name}"
        ends, about = metrics_at(asked.metrics_port), {"worker": asked.name, **told_of_limits(asked.limits)}
        exits.enter_context(registered(kafka, who, topic=FLOWS, endpoints=ends, capabilities=about))
        follower = exits.enter_context(FlowFollower(kafka))
        worker, reporter = Worker(asked, registry, read_rights(kafka)), ProblemReporter(kafka, asked.name)
        exits.callback(reporter.close)
        exits.callback(worker.leave)
        if asked.metrics_port:
            exits.callback(_page(worker, asked.metrics_port).stop)
        log.info("worker %s", asked.name)
        while not stop.is_set():
            worker.follow_rights()
            worker.follow(follower.flows())
            worker.tidy(follower.flows())
            reporter.report(worker.found())
            follower.await_change(LOOK)
    log.info("left")
