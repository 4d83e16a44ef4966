"""The dashboard *the night*: in = out, rates, lag, faults, processes."""

from nightwire.monitoring.dashboards.machines import DISK_LEFT
from nightwire.monitoring.dashboards.machines import EMPTY as NO_NODE
from nightwire.monitoring.dashboards.panel import RATE, Kind, Panel, Row, number_panel, quantile

COLUMNS = ("read", "delivered", "rejected", "capped", "faulted", "dead_lettered", "missing")
STAGES = {
    column.replace("_", "-"): f"sum by (stage) (nightwire_accounts_{column})" for column in COLUMNS
}  # summed, so that the stage is all that the columns share

IN_IS_OUT = Row(
    "In = out",
    (
        number_panel(
            "Missing",
            "Records that a stage read and that are in no class. Anything but 0: act now.",
            {"missing": "nightwire:missing"},
            red_above=1,
        ),
        number_panel(
            "Accounts that do not join",
            "Overlaps, gaps, sums that are wrong: `nightwire accounts` names them.",
            {"accounts": "nightwire_accounts_discrepancies"},
            red_above=1,
        ),
        number_panel(
            "Dead letters",
            "Records that nobody could read, ever; each keeps where from and why.",
            {"dead letters": 'nightwire_topic_records_total{topic="dead-letters"}'},
            red_above=1,
        ),
        number_panel(
            "Expired",
            "Records that retention removed before a stage read them.",
            {"expired": "sum(nightwire_stage_expired_records)"},
            red_above=1,
        ),
        number_panel(
            "Processes up",
            "Those of nightwire that answer.",
            {"up": 'sum(up{job="nightwire"})', "of": 'count(up{job="nightwire"})'},
        ),
        number_panel(
            "Latest visit",
            "Alerts delivered in each survey's latest visit.",
            {"{{survey}}": "nightwire_visit_alerts"},
        ),
        number_panel(
            "Alerts a second",
            "What all surveys' topics took within a minute.",
            {"alerts": 'sum(nightwire:topic_records:rate1m{topic=~"alerts[.].+"})'},
            unit=RATE,
        ),
        number_panel(
            "Judged a second",
            "Alerts that the filters judged within a minute.",
            {"judged": "sum(rate(nightwire_filters_records_judged_total[1m]))"},
            unit=RATE,
        ),
        number_panel(
            "Producer to topic, p99",
            "From Kafka's timestamp of an alert to the acknowledged copy, of filters that take the first.",
            {"p99": quantile(0.99, "nightwire_filters_delay_seconds", choice="first")},
            unit="s",
            red_above=6,
        ),
        number_panel(
            "Visits behind",
            "How far the slowest stage is behind, in visits.",
            {"visits": "nightwire:lag:worst / nightwire:visit_alerts:max"},
            red_above=1,
        ),
        number_panel(
            "Cut off by caps",
            "Alerts that passed above a filter's number a visit, ever; `nightwire filter overflow` has them.",
            {"capped": 'sum(nightwire_accounts_capped{stage=~"filter[.].+"})'},
        ),
        number_panel(
            "Faults in ten minutes",
            "Alerts on which a filter failed: its owner's concern, and no other filter's.",
            {"faults": "sum(increase(nightwire_filters_alerts_faulted_total[10m]))"},
            red_above=1,
        ),
        Panel(
            "Stage by stage",
            "What each stage and each filter read, and what became of it. Read is the sum of the rest.",
            STAGES,
            kind=Kind.TABLE,
            width=24,
        ),
    ),
)

RATES = Row(
    "Rates",
    (
        Panel(
            "Alerts in",
            "Alerts that the surveys' topics took.",
            {"{{topic}}": 'nightwire:topic_records:rate1m{topic=~"alerts[.].+"}'},
            unit=RATE,
        ),
        Panel(
            "VOEvents",
            "Events that the topic took, and what the gateway received by outcome.",
            {
                "in Kafka": 'nightwire:topic_records:rate1m{topic="voevents"}',
                "{{source}}, {{outcome}}": "rate(nightwire_gateway_events_received_total[1m])",
            },
            unit=RATE,
        ),
        Panel(
            "Passed, by filter",
            "Alerts a second that went to a filter's topic.",
            {"{{filter}}": "rate(nightwire_filters_alerts_passed_total[1m])"},
            unit=RATE,
        ),
        Panel(
            "Judged",
            "Alerts a second that the filter engine judged.",
            {"{{source}}": "rate(nightwire_filters_records_judged_total[1m])"},
            unit=RATE,
        ),
        Panel(
            "Time of a batch",
            "From planned to accounted: nine of ten batches took less.",
            {"p90": quantile(0.9, "nightwire_filters_batch_seconds")},
            unit="s",
        ),
        Panel(
            "Time to acknowledge a VOEvent",
            "From its last byte to Kafka's acknowledgement: nine of ten took less.",
            {"p90": quantile(0.9, "nightwire_gateway_acknowledged_seconds")},
            unit="s",
        ),
    ),
)

LAG = Row(
    "Lag",
    (
        Panel(
            "Stages",
            "Records not yet accounted for; the line is a visit.",
            {"{{stage}}, {{topic}}": "nightwire_stage_lag_records", "a visit": "nightwire:visit_alerts:max"},
        ),
        Panel(
            "Consumer groups",
            "Records ahead of what a group has committed.",
            {"{{group}}, {{topic}}": "nightwire_consumer_lag_records"},
            empty="until a reader has committed",
        ),
        Panel(
            "Peers of the gateway",
            "Open VTP connections.",
            {"{{role}}": "nightwire_gateway_connections"},
        ),
    ),
)

FAULTS = Row(
    "Faults",
    (
        Panel(
            "Filters that failed",
            "Alerts on which a filter failed: its owner's concern, and no other filter's.",
            {"{{filter}}": "rate(nightwire_filters_alerts_faulted_total[5m])"},
            unit=RATE,
        ),
        Panel(
            "Cut off by the cap",
            "Alerts that passed a filter above its number a visit.",
            {"{{stage}}": 'nightwire_accounts_capped{stage=~"filter[.].+"}'},
        ),
        Panel(
            "Alarms",
            "What is firing now; docs/operator/trouble.md says what to do.",
            {"{{alertname}}": 'ALERTS{alertstate="firing"}'},
            empty="while none fires",
        ),
    ),
)

PROCESSES = Row(
    "Processes and machines",
    (
        Panel(
            "Up",
            "1: the process answers; 0: it does not.",
            {"{{process}}": 'up{job="nightwire"}'},
            red_below=1,
        ),
        Panel(
            "Kafka",
            "Brokers, and partitions that are not as they should be.",
            {
                "brokers": "nightwire_kafka_brokers",
                "under-replicated partitions": "nightwire_kafka_under_replicated_partitions",
                "offline partitions": "nightwire_kafka_offline_partitions",
            },
        ),
        Panel(
            "Disk left",
            "Share of each disk that is free.",
            {"{{mountpoint}}": DISK_LEFT},
            unit="percentunit",
            red_below=0.1,
            empty=NO_NODE,
        ),
    ),
)

NIGHT: tuple[Row, ...] = (IN_IS_OUT, RATES, LAG, FAULTS, PROCESSES)
