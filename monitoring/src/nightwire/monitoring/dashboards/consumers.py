"""The dashboard *consumers*: who reads, how far behind they are, and what brokers take."""

from nightwire.monitoring.dashboards.panel import RATE, Kind, Panel, Row, number_panel

OF_FLOWS = '{stage=~"flow[.].+"}'
"""Parts of flows, and their terminals."""

READERS = Row(
    "Groups",
    (
        Panel(
            "Behind, by group",
            "Records ahead of what each group has committed, the ten furthest behind; the line is a visit.",
            {
                "{{group}}, {{topic}}": "topk(10, nightwire_consumer_lag_records)",
                "a visit": "nightwire:visit_alerts:max",
            },
            width=12,
        ),
        Panel(
            "Groups and topics",
            "Every group, what it reads, and how many records lie ahead of it.",
            {"behind": "max by (group, topic) (nightwire_consumer_lag_records)"},
            kind=Kind.TABLE,
            width=12,
        ),
    ),
    empty="until a reader has committed (`nightwire subscribe --group`)",
)

OFFERED = Row(
    "What there is to read",
    (
        Panel(
            "Alerts",
            "Records a second that the surveys' topics took.",
            {"{{topic}}": 'nightwire:topic_records:rate1m{topic=~"alerts[.].+"}'},
            unit=RATE,
        ),
        Panel(
            "Filters' topics",
            "Copies a second, the ten filters that got most.",
            {"{{topic}}": 'topk(10, nightwire:topic_records:rate1m{topic=~"filter[.].+"})'},
            unit=RATE,
        ),
        Panel(
            "VOEvents",
            "Events a second.",
            {"{{topic}}": 'nightwire:topic_records:rate1m{topic="voevents"}'},
            unit=RATE,
        ),
        Panel(
            "Gone before they were read",
            "Records that retention removed before a stage read them: they are lost to it.",
            {"{{stage}}, {{topic}}": "nightwire_stage_expired_records"},
            red_above=1,
        ),
        Panel(
            "Could not be read",
            "Dead letters, ever; `nightwire dead-letters list` says where from and why.",
            {"dead letters": 'nightwire_topic_records_total{topic="dead-letters"}'},
        ),
        Panel(
            "Beyond the caps",
            "References to alerts that passed and were cut off; `nightwire filter overflow` fetches them.",
            {"{{topic}}": 'topk(10, nightwire_topic_records_total{topic=~"overflow[.].+"})'},
            empty="until a cap was reached",
        ),
    ),
)

BROKERS = Row(
    "Community brokers",
    (
        Panel(
            "Behind, by broker's group",
            "Records ahead of what a broker's consumer group has committed; the line is a visit.",
            {
                "{{group}}, {{topic}}": "nightwire_broker_lag_records",
                "a visit": "nightwire:visit_alerts:max",
            },
        ),
        Panel(
            "Taken, by broker",
            "Records a second that a broker's groups commit. Flat while behind: its quota, or itself.",
            {"{{broker}}": "sum by (broker) (rate(nightwire_broker_read_records_total[5m]))"},
            unit=RATE,
        ),
        Panel(
            "Written to their own streams",
            "Bytes a second that filters wrote to brokers' streams.",
            {"{{to}}": 'rate(nightwire_filters_copied_bytes_total{to=~"broker[.].+"}[5m])'},
            unit="Bps",
            empty="until a broker has ordered a stream of its own",
        ),
        Panel(
            "Sent back",
            "Classifications a second that brokers returned.",
            {"{{topic}}": 'nightwire:topic_records:rate1m{topic=~"returns[.].+"}'},
            unit=RATE,
        ),
        Panel(
            "Held back by a quota",
            "Time that Kafka made a user wait, so that it keeps to its quota.",
            {"{{user}}, {{what}}": "max by (user, what) (kafka_server_throttle_seconds)"},
            unit="s",
            empty="where nobody has a quota, or Kafka's agent does not run",
        ),
    ),
    empty="while no community broker reads",
)

ARCHIVE = Row(
    "The archive, and what is asked",
    (
        number_panel(
            "Newest row",
            "Time since the newest archived alert was written; by day nothing comes.",
            {"ago": "time() - max(nightwire_archive_newest_timestamp_seconds > 0)"},
            unit="s",
        ),
        number_panel(
            "Not archived yet",
            "Alerts that the archive has not written, of all surveys.",
            {"behind": 'sum(nightwire_stage_lag_records{stage="archive"})'},
        ),
        Panel(
            "Archived",
            "Alerts a second that became rows.",
            {"alerts": 'sum(rate(nightwire_accounts_delivered{stage="archive"}[5m]))'},
            unit=RATE,
        ),
        Panel(
            "Answers over HTTP",
            "Answers a second, by process and HTTP status.",
            {
                f"{name} {{{{status}}}}": f"sum by (status) (rate(nightwire_{name}_requests_total[5m]))"
                for name in ("archive", "directory", "portal")
            },
            unit=RATE,
            empty="of a process that nobody has asked",
        ),
    ),
    empty="where there is no archive (`nightwire up --no-archive`), or it has no row",
)

FLOWS = Row(
    "Flows",
    (
        Panel(
            "Behind, by flow or terminal",
            "Records that a part of a flow, or a terminal, has not accounted for yet.",
            {"{{stage}}": f"sum by (stage) (nightwire_stage_lag_records{OF_FLOWS})"},
            width=6,
        ),
        Panel(
            "Delivered",
            "Events a second, by flow; of a terminal (FLOW.STONE) what was taken there.",
            {"{{stage}}": f"sum by (stage) (rate(nightwire_accounts_delivered{OF_FLOWS}[5m]))"},
            unit=RATE,
            width=6,
        ),
        Panel(
            "Tried again",
            "Attempts a second that a terminal's other side did not take.",
            {"{{flow}}": "sum by (flow) (rate(nightwire_flows_retries_total[5m]))"},
            unit=RATE,
            width=6,
        ),
        Panel(
            "Dead letters",
            "Events, ever, that no stone could use, or no other side took.",
            {"{{stage}}": f"sum by (stage) (nightwire_accounts_dead_lettered{OF_FLOWS})"},
            width=6,
        ),
    ),
    empty="until a flow has read something (`nightwire flow up`)",
)

CONSUMERS: tuple[Row, ...] = (OFFERED, READERS, BROKERS, ARCHIVE, FLOWS)
