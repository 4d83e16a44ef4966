"""A worker as a process: it follows the topic `flows`, reports problems, and shows metrics."""

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
from nightwire.flows.flow_follower import FlowFollower
from nightwire.flows.problems import ProblemReporter
from nightwire.flows.terminals import TerminalLimits
from nightwire.flows.terminals.mail import ALLOWED_RECIPIENTS
from nightwire.flows.worker import Worker, WorkerSettings
from nightwire.schemas import SchemaRegistry
from nightwire.schemas.topics import FLOW_PROBLEMS, FLOWS, settings

log = logging.getLogger("nightwire.flows")

POLL_INTERVAL = 0.2
"""Longest time until a change of a flow is seen. [s]"""


class WorkerMetrics(Collector):
    """The metrics of a worker; accounts count what its flows read and wrote."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics."""
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


def _metrics_page(worker: Worker, port: int) -> MetricsPage:
    registry = CollectorRegistry()
    registry.register(WorkerMetrics(worker))
    page = MetricsPage(registry, port=port)
    page.start()
    return page


def default_name() -> str:
    """Return a worker's default name: host and process."""
    return f"{socket.gethostname()}-{os.getpid()}"


def advertised_limits(limits: TerminalLimits) -> dict[str, Any]:
    """Return where a worker's terminals may send to, for the directory: no person's address."""
    named = (one.strip().lower() for one in os.environ.get(ALLOWED_RECIPIENTS, "").split(","))
    return {"inside": limits.allow_private, "mail": sorted(one for one in named if one and "@" not in one)}


def serve(config: WorkerSettings) -> None:
    """Run flows until a signal.

    Raises:
        KafkaException: Kafka refuses.
    """
    setup_logging("nightwire.flows")
    pa.array([0])  # Arrow imports pandas with its first array: not within the first batch
    kafka = enter(config.endpoints.kafka)
    with ExitStack() as exits:
        stop = exits.enter_context(stopping())
        ensure_topics(kafka, [settings(FLOWS)])
        with suppress(KafkaException):  # an older Kafka's rights may lack it
            ensure_topics(kafka, [settings(FLOW_PROBLEMS)])
        url, which = config.endpoints.schema_registry, partial(cluster_id, kafka)
        registry = exits.enter_context(SchemaRegistry(url, cluster_id=which, login=login(kafka)))
        who, ends = f"flows {config.name}", metrics_at(config.metrics_port)
        about = {"worker": config.name, **advertised_limits(config.limits)}
        exits.enter_context(registered(kafka, who, topic=FLOWS, endpoints=ends, capabilities=about))
        follower = exits.enter_context(FlowFollower(kafka))
        worker, reporter = Worker(config, registry, read_rights(kafka)), ProblemReporter(kafka, config.name)
        exits.callback(reporter.close)
        exits.callback(worker.leave)
        if config.metrics_port:
            exits.callback(_metrics_page(worker, config.metrics_port).stop)
        log.info("worker %s", config.name)
        while not stop.is_set():
            worker.refresh_rights()
            worker.follow(follower.flows())
            worker.clean_up(follower.flows())
            reporter.report(worker.problems())
            follower.await_change(POLL_INTERVAL)
    log.info("left")
