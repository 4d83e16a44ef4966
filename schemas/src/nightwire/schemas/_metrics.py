"""The registry's metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class Metrics:
    """What the registry counts.

    Args:
        registry: Where the metrics are collected.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "nightwire_schemas_requests_total",
            "Requests answered, by HTTP method and status.",
            ["method", "status"],
            registry=registry,
        )
        self.records = Counter(
            "nightwire_schemas_log_records_total",
            "Records read from the log, by what came of them (applied, refused, foreign).",
            ["outcome"],
            registry=registry,
        )
        self.ready = Gauge(
            "nightwire_schemas_ready",
            "1 once the log has been read to its end.",
            registry=registry,
        )
        self.schemas = Gauge("nightwire_schemas_known", "Schemas known, by id.", registry=registry)
