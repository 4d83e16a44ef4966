"""The dashboard *schemas*: the registry's health, what it knows and who asks it."""

from nightwire.monitoring.dashboards.panel import RATE, Panel, Row, number_panel

ANSWERED = "nightwire_schemas_requests_total"

NOTHING = "until a schema was registered"

REGISTRY = Row(
    "The schema registry",
    (
        number_panel(
            "Ready",
            "1: it has read its log to the end. Readers and writers work on without it, by what they keep.",
            {"{{process}}": "nightwire_schemas_ready"},
            red_below=1,
        ),
        number_panel("Schemas", "How many it knows, by id.", {"known": "max(nightwire_schemas_known)"}),
        number_panel(
            "Answers a second",
            "Of all kinds. Clients keep what they asked for, so it is little.",
            {"answers": f"sum(rate({ANSWERED}[5m]))"},
            unit=RATE,
        ),
        number_panel(
            "Failed in five minutes",
            "Requests that it could not answer by its own fault: it waits for Kafka, or its log.",
            {"failed": f'sum(increase({ANSWERED}{{status=~"5.."}}[5m])) or vector(0)'},
            red_above=1,
        ),
        number_panel(
            "Not known, in five minutes",
            "Requests for what it does not have, or that were wrong: a reader with a schema of nobody's.",
            {"refused": f'sum(increase({ANSWERED}{{status=~"4.."}}[5m])) or vector(0)'},
        ),
        number_panel(
            "Lines of its log",
            "Records of `_schemas` that it has read since its start.",
            {"read": "sum(nightwire_schemas_log_records_total)"},
            empty=NOTHING,
        ),
        Panel(
            "Requests",
            "Answers a second, by method and status.",
            {"{{method}} {{status}}": f"sum by (method, status) (rate({ANSWERED}[5m]))"},
            unit=RATE,
            width=12,
        ),
        Panel(
            "The log",
            "Records read, by what came of them: *refused* ones were written by somebody else.",
            {"{{outcome}}": "sum by (outcome) (nightwire_schemas_log_records_total)"},
            width=12,
            empty=NOTHING,
        ),
    ),
)

SCHEMAS: tuple[Row, ...] = (REGISTRY,)
