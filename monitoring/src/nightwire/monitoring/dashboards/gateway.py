"""The dashboard *the gateway*: events in and out, feeds, peers, and who was kept out."""

from nightwire.monitoring.dashboards.panel import RATE, Panel, Row, quantile

FEEDS = Row(
    "Feeds",
    (
        Panel(
            "Time since the last event",
            "Of each feed; since the gateway's start, where none came.",
            {"{{feed}}": "time() - max by (feed) (nightwire_gateway_feed_last_event_timestamp_seconds)"},
            unit="s",
        ),
        Panel(
            "Events that came",
            "Before each subscriber's filters, tests among them.",
            {"{{feed}}, {{role}}": "sum by (feed, role) (rate(nightwire_gateway_feed_events_total[5m]))"},
            unit=RATE,
        ),
        Panel(
            "Remote brokers",
            "1: we are connected to it; 0: it is away.",
            {"{{remote}}": "nightwire_gateway_remote_up"},
            red_below=1,
            empty="without `--remote`",
        ),
    ),
)

EVENTS = Row(
    "Events",
    (
        Panel(
            "In",
            "Events received, by where from and what became of them.",
            {
                "{{source}}, {{outcome}}": "sum by (source, outcome) "
                "(rate(nightwire_gateway_events_received_total[5m]))"
            },
            unit=RATE,
        ),
        Panel(
            "Out",
            "Events sent to subscribers, and what they answered.",
            {
                "sent": "sum(rate(nightwire_gateway_events_sent_total[5m]))",
                "{{answer}}": "sum by (answer) (rate(nightwire_gateway_events_answered_total[5m]))",
            },
            unit=RATE,
            empty="until a subscriber was sent something",
        ),
        Panel(
            "Time to Kafka's acknowledgement",
            "From the last byte of an author's event: half took less, all but one in a hundred took less.",
            {
                "p50": quantile(0.5, "nightwire_gateway_acknowledged_seconds"),
                "p99": quantile(0.99, "nightwire_gateway_acknowledged_seconds"),
            },
            unit="s",
        ),
    ),
)

PEERS = Row(
    "Peers",
    (
        Panel(
            "Connections",
            "Open ones, by role.",
            {"{{role}}": "sum by (role) (nightwire_gateway_connections)"},
        ),
        Panel(
            "Kept out",
            "Connections refused, by reason: *address* and *denied* are the access lists, *full* and "
            "*address-full* the limits, *tls* a handshake that failed.",
            {
                "{{role}}, {{reason}}": "sum by (role, reason) "
                "(increase(nightwire_gateway_connections_refused_total[5m]))"
            },
            empty="until somebody was kept out",
        ),
        Panel(
            "Cut off, and not read",
            "Connections that we ended, and documents that were not even read, by reason.",
            {
                "{{role}}, {{reason}}": "sum by (role, reason) "
                "(increase(nightwire_gateway_connections_dropped_total[5m]))",
                "document: {{role}}, {{reason}}": "sum by (role, reason) "
                "(increase(nightwire_gateway_documents_refused_total[5m]))",
            },
            empty="until somebody was cut off",
        ),
    ),
)

MEMORY = Row(
    "Memory",
    (
        Panel(
            "Held",
            "Recent events for subscribers; authors' events, incomplete or on their way to Kafka.",
            {
                "recent": "sum(nightwire_gateway_held_bytes)",
                "from authors": "sum(nightwire_gateway_intake_bytes)",
            },
            unit="bytes",
        ),
        Panel(
            "On their way",
            "Events between arrival and index.",
            {"events": "sum(nightwire_gateway_pending_events)"},
        ),
        Panel(
            "Read from Kafka again",
            "Events for subscribers that fell behind.",
            {"events": "sum(rate(nightwire_gateway_backlog_events_total[5m]))"},
            unit=RATE,
        ),
    ),
)

GATEWAY: tuple[Row, ...] = (FEEDS, EVENTS, PEERS, MEMORY)
