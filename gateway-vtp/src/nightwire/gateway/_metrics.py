"""The gateway's metrics, all of them."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class GatewayMetrics:
    """What one gateway process counts.

    Args:
        registry: Where to register.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.received = Counter(
            "nightwire_gateway_events_received",
            "Events received, by where from (author, broker) and what became of them "
            "(accepted, duplicate, invalid, too-large, failed)",
            ["source", "outcome"],
            registry=registry,
        )
        self.sent = Counter(
            "nightwire_gateway_events_sent",
            "Events sent to subscribers, by role",
            ["role"],
            registry=registry,
        )
        self.answered = Counter(
            "nightwire_gateway_events_answered",
            "Answers of subscribers to events, by kind (ack, nak)",
            ["answer"],
            registry=registry,
        )
        self.filtered = Counter(
            "nightwire_gateway_events_filtered",
            "Events that a subscriber's own filters kept back",
            registry=registry,
        )
        self.too_large = Counter(
            "nightwire_gateway_events_too_large",
            "Events not sent, because their frame is longer than subscribers take",
            registry=registry,
        )
        self.refused = Counter(
            "nightwire_gateway_connections_refused",
            "Connections refused, by role (author, subscriber) and reason (address, full)",
            ["role", "reason"],
            registry=registry,
        )
        self.dropped = Counter(
            "nightwire_gateway_connections_dropped",
            "Connections that we ended, by role (author, subscriber, broker) and reason",
            ["role", "reason"],
            registry=registry,
        )
        self.connections = Gauge(
            "nightwire_gateway_connections",
            "Open connections, by role (author, subscriber, broker)",
            ["role"],
            registry=registry,
        )
        self.pending = Gauge(
            "nightwire_gateway_pending_events", "Events between arrival and index", registry=registry
        )
        self.backlog = Counter(
            "nightwire_gateway_backlog_events",
            "Events read from Kafka again, for subscribers that fell behind",
            registry=registry,
        )
        self.held = Gauge(
            "nightwire_gateway_held_bytes", "Recent events held in memory", unit="", registry=registry
        )
        self.dead_lettered = Counter(
            "nightwire_gateway_dead_letters", "Records that could not be read", ["topic"], registry=registry
        )
        self.acknowledged_seconds = Histogram(
            "nightwire_gateway_acknowledged_seconds",
            "Time from the last byte of an event to its acknowledgement by Kafka",
            buckets=_SECONDS,
            registry=registry,
        )
