"""The dashboard *producer*: what is written, on time or late, and what is mirrored."""

from nightwire.monitoring.dashboards.panel import RATE, Panel, Row, number_panel, quantile

MIRRORS = "while no `nightwire ingest` is watched"
WRITES = "while no producer with a page is watched"

ARRIVED = Row(
    "In Kafka",
    (
        Panel(
            "Alerts in",
            "Alerts a second that the surveys' topics took, whoever wrote them.",
            {"{{topic}}": 'nightwire:topic_records:rate1m{topic=~"alerts[.].+"}'},
            unit=RATE,
        ),
        Panel(
            "Latest visit",
            "Alerts delivered in each survey's latest visit.",
            {"{{survey}}": "nightwire_visit_alerts"},
        ),
        Panel(
            "Accepted, and refused by name",
            "What producers' accounts say: each alert is in Kafka, or was refused with a reason.",
            {
                "delivered": 'sum(nightwire_accounts_delivered{stage=~"producer|ingest"})',
                "refused": 'sum(nightwire_accounts_rejected{stage=~"producer|ingest"})',
            },
        ),
    ),
)

WRITTEN = Row(
    "Producers",
    (
        Panel(
            "Acknowledged",
            "Alerts a second that Kafka acknowledged, counted as visits end.",
            {"{{survey}}": "sum by (survey) (rate(nightwire_producer_alerts_total[5m]))"},
            unit=RATE,
        ),
        Panel(
            "Visits",
            "Visits ended within an hour.",
            {"{{survey}}": "sum by (survey) (increase(nightwire_producer_visits_total[1h]))"},
        ),
        Panel(
            "Since the latest visit",
            "Time since it was opened: to stay below what visits are apart.",
            {"{{survey}}": "time() - max by (survey) (nightwire_producer_last_visit_timestamp_seconds)"},
            unit="s",
        ),
        Panel(
            "Late",
            "By how much alerts were handed over later than due: half, and 99 of 100 of them.",
            {
                "p50": quantile(0.5, "nightwire_producer_behind_seconds"),
                "p99": quantile(0.99, "nightwire_producer_behind_seconds"),
            },
            unit="s",
        ),
        Panel(
            "Refused",
            "Alerts that were not written, by reason.",
            {"{{survey}}, {{reason}}": "sum by (survey, reason) (nightwire_producer_refused_total)"},
            empty="until an alert was refused",
        ),
    ),
    empty=WRITES,
)

MIRRORED = Row(
    "Mirrors of a survey's own Kafka",
    (
        number_panel(
            "Waits for a schema",
            "1: alerts came whose schema nobody has; `nightwire ingest` says which.",
            {"{{survey}}": "max by (survey) (nightwire_ingest_waits_for_schema)"},
            red_above=1,
            width=8,
        ),
        number_panel(
            "Behind the survey",
            "Records of the survey that were not mirrored yet.",
            {"{{survey}}": "sum by (survey) (nightwire_ingest_lag_records)"},
            width=8,
        ),
        number_panel(
            "Since the latest batch",
            "Time since a batch was in our Kafka; by day nothing comes.",
            {"{{survey}}": "time() - max by (survey) (nightwire_ingest_last_batch_timestamp_seconds)"},
            unit="s",
            width=8,
        ),
        Panel(
            "Records and alerts",
            "Records a second that were read there, and alerts a second that came of them.",
            {
                "read, {{survey}}": "sum by (survey) (rate(nightwire_ingest_records_read_total[5m]))",
                "alerts, {{survey}}": "sum by (survey) (rate(nightwire_ingest_alerts_total[5m]))",
            },
            unit=RATE,
        ),
        Panel(
            "Batches",
            "Transactions a second.",
            {"{{survey}}": "sum by (survey) (rate(nightwire_ingest_transactions_total[5m]))"},
            unit=RATE,
        ),
        Panel(
            "Behind, by topic",
            "Records of the survey's topics that lie ahead.",
            {"{{topic}}": "sum by (topic) (nightwire_ingest_lag_records)"},
        ),
        Panel(
            "Of no use",
            "Records that nobody could read (dead letters), and those that hold no alert, by reason.",
            {
                "dead letters, {{survey}}": "sum by (survey) (nightwire_ingest_dead_letters_total)",
                "{{reason}}, {{survey}}": "sum by (survey, reason) (nightwire_ingest_rejected_total)",
            },
            empty="until such a record came",
        ),
    ),
    empty=MIRRORS,
)

PRODUCER: tuple[Row, ...] = (ARRIVED, WRITTEN, MIRRORED)
