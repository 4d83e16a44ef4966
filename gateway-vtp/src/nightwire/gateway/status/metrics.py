"""All metrics of the gateway."""

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)


class GatewayMetrics:
    """The metrics of one gateway process.

    Args:
        registry: Where to register.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.received = Counter(
            "nightwire_gateway_events_received",
            "Events received, by source (author, broker, gcn) and outcome "
            "(accepted, duplicate, invalid, unsigned, too-large, failed)",
            ["source", "outcome"],
            registry=registry,
        )
        self.sent = Counter(
            "nightwire_gateway_events_sent",
            "Events sent to subscribers, by feed and role",
            ["feed", "role"],
            registry=registry,
        )
        self.answered = Counter(
            "nightwire_gateway_events_answered",
            "Answers of subscribers to events, by kind (ack, nak)",
            ["answer"],
            registry=registry,
        )
        self.withheld = Counter(
            "nightwire_gateway_events_withheld",
            "Events that a subscriber did not get, by feed and reason: the feed's topics (topic), roles "
            "(role), expressions (xpath) or rate (rate), the subscriber's expressions (filter), or a frame "
            "longer than it takes (size)",
            ["feed", "reason"],
            registry=registry,
        )
        self.filters = Counter(
            "nightwire_gateway_filters",
            "XPath filters of subscribers, by outcome (taken, refused, off), and events that one was not "
            "evaluated over, which are sent (unjudged)",
            ["outcome"],
            registry=registry,
        )
        self.refused = Counter(
            "nightwire_gateway_connections_refused",
            "Connections refused, by role (author, subscriber) and reason (address, denied, full, "
            "address-full, tls)",
            ["role", "reason"],
            registry=registry,
        )
        self.dropped = Counter(
            "nightwire_gateway_connections_dropped",
            "Connections that we ended, by role (author, subscriber, broker) and reason (silent, slow, "
            "frame, flood, memory, unsigned, lost)",
            ["role", "reason"],
            registry=registry,
        )
        self.connections = Gauge(
            "nightwire_gateway_connections",
            "Open connections, by role (author, subscriber, broker)",
            ["role"],
            registry=registry,
        )
        self.documents_refused = Counter(
            "nightwire_gateway_documents_refused",
            "Documents that were not read, by role and reason (malformed, doctype, entity, depth)",
            ["role", "reason"],
            registry=registry,
        )
        self.intake = Gauge(
            "nightwire_gateway_intake_bytes",
            "Memory of authors' events that are incomplete, or on their way to Kafka",
            unit="",
            registry=registry,
        )
        self.feed_events = Counter(
            "nightwire_gateway_feed_events",
            "Events on a feed, before its filters, by role",
            ["feed", "role"],
            registry=registry,
        )
        self.feed_last = Gauge(
            "nightwire_gateway_feed_last_event_timestamp_seconds",
            "Time of the last event on a feed; of the gateway's start, where there was none",
            ["feed"],
            registry=registry,
        )
        self.remote_up = Gauge(
            "nightwire_gateway_remote_up",
            "Whether a remote broker is connected",
            ["remote"],
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
        self.gcn_behind = Gauge(
            "nightwire_gateway_gcn_behind_events", "Records of GCN that were not read yet", registry=registry
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
        self.handled = Counter(
            "nightwire_gateway_handled",
            "Events that a handler acted on, by handler and outcome (done, failed, late, not-started)",
            ["handler", "outcome"],
            registry=registry,
        )
        self.handling = Gauge(
            "nightwire_gateway_handling_events",
            "Events that a handler acts on now",
            ["handler"],
            registry=registry,
        )
        self.handler_behind = Gauge(
            "nightwire_gateway_handler_behind_events",
            "Events that a handler is not done with",
            ["handler"],
            registry=registry,
        )
        self.handler_seconds = Histogram(
            "nightwire_gateway_handler_seconds",
            "Time that a handler took over an event",
            ["handler"],
            buckets=(*_SECONDS, 60, 300),
            registry=registry,
        )
        self.signatures = Counter(
            "nightwire_gateway_signatures",
            "Signatures asked for, by role (author, broker, subscriber) and what was found (good, missing, "
            "unreadable, unknown-key, expired, revoked, stale, bad, not-allowed)",
            ["role", "finding"],
            registry=registry,
        )
        for counter in (self.received, self.sent):  # asked for each event
            counter.labels = cache(counter.labels)  # type: ignore[method-assign]
