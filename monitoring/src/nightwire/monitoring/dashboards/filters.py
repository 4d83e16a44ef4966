"""The dashboard *filters*: batches, delays, costs and caps."""

from nightwire.monitoring.dashboards.panel import RATE, Kind, Panel, Row, quantile

BATCH, DELAY = "nightwire_filters_batch_seconds", "nightwire_filters_delay_seconds"
CPU = "sum by (filter) (rate(nightwire_filters_cpu_seconds_total[5m]))"
JUDGED = " + ".join(
    f"sum by (filter) (rate(nightwire_filters_alerts_{name}_total[5m]))"
    for name in ("passed", "rejected", "faulted")
)


def _mean(summary: str) -> str:
    """Return the mean of each phase over five minutes."""
    return f"sum by (phase) (rate({summary}_sum[5m])) / sum by (phase) (rate({summary}_count[5m]))"


def _top(query: str) -> str:
    return f"topk(10, {query})"


def _delay(share: float) -> str:
    """Return the quantile of the delays of copies that are sent at once."""
    return quantile(share, DELAY, choice="first")


NOW = Row(
    "Now",
    (
        Panel(
            "Live filters",
            "Compiled ones are judged over columns, all together; the others alert by alert, in the sandbox.",
            {"{{way}}": "nightwire_filters_live_filters"},
            kind=Kind.NUMBER,
            width=4,
        ),
        Panel(
            "A batch, p99",
            "From planned to accounted: 99 of 100 took less.",
            {"p99": quantile(0.99, BATCH)},
            unit="s",
            red_above=10,
            kind=Kind.NUMBER,
            width=4,
        ),
        Panel(
            "Producer to topic, p99",
            "From Kafka's timestamp of an alert to the acknowledged copy, of filters that take the first.",
            {"p99": _delay(0.99)},
            unit="s",
            red_above=6,
            kind=Kind.NUMBER,
            width=4,
        ),
        Panel(
            "Held",
            "Alerts that filters which take the best hold until their visit ends.",
            {"held": "nightwire_filters_held_alerts"},
            kind=Kind.NUMBER,
            width=4,
        ),
        Panel(
            "Suspended in a day",
            "Filters that had to be stopped, or failed on everything; their owners were told why.",
            {"suspended": "sum(increase(nightwire_filters_suspensions_total[1d]))"},
            red_above=1,
            kind=Kind.NUMBER,
            width=4,
            empty="until a filter was suspended",
        ),
        Panel(
            "The query",
            "1: it runs; and how often it was started again in a day.",
            {
                "runs": "nightwire_filters_query_running",
                "restarts": "increase(nightwire_filters_query_restarts_total[1d])",
            },
            kind=Kind.NUMBER,
            width=4,
        ),
    ),
)

BATCHES = Row(
    "Batches",
    (
        Panel(
            "Time of a batch",
            "From planned to accounted, half and 99 of 100 of them.",
            {"p50": quantile(0.5, BATCH), "p99": quantile(0.99, BATCH)},
            unit="s",
        ),
        Panel(
            "Time to judge a visit",
            "All batches of as many alerts as a visit has: to be less than visits are apart.",
            {
                "a visit": f"scalar(nightwire:visit_alerts:max) * sum(rate({BATCH}_sum[5m]))"
                " / sum(rate(nightwire_filters_records_judged_total[5m]))"
            },
            unit="s",
        ),
        Panel(
            "Behind",
            "Records not judged yet; the line is a visit.",
            {"{{source}}": "nightwire_filters_lag_records", "a visit": "nightwire:visit_alerts:max"},
        ),
        Panel(
            "Where the time goes",
            "Mean of each part of a batch: judging in the workers (in it, of all tasks together, reading and "
            "decoding), deciding, sending (in it fetching again), accounting.",
            {"{{phase}}": _mean("nightwire_filters_phase_seconds")},
            unit="s",
        ),
        Panel(
            "Where Spark's time goes",
            "Mean of each phase that Spark tells of; addBatch holds ours.",
            {"{{phase}}": _mean("nightwire_filters_spark_phase_seconds")},
            unit="s",
            empty="with the light engine",
        ),
        Panel(
            "Records of a batch",
            "What the last batch read, and the rows that came of it in Spark: only what passed.",
            {
                "read": "nightwire_filters_batch_records",
                "rows in Spark": "nightwire_filters_spark_input_rows",
            },
        ),
    ),
)

SLOW = Row(
    "The slow lanes",
    (
        Panel(
            "How far they are behind",
            "Each owner's filters that cost much follow the others at their own pace; he sees this too.",
            {"{{owner}}": _top("nightwire_filters_slow_lag_seconds")},
            unit="s",
            empty="until a filter costs much",
        ),
        Panel(
            "Their filters",
            "Filters that cost more than 50 µs an alert, or that nobody has measured yet.",
            {"{{owner}}": _top("nightwire_filters_slow_filters")},
            empty="until a filter costs much",
        ),
        Panel(
            "Left out",
            "Alerts a second that were too old for their lane: accounted for, and their owners were told.",
            {"{{filter}}": _top("rate(nightwire_filters_alerts_unjudged_total[5m])")},
            empty="until a filter costs much",
        ),
    ),
)

DELAYS = Row(
    "From the producer to users' topics",
    (
        Panel(
            "Sent at once",
            "Filters that take the first: from Kafka's timestamp to the acknowledged copy.",
            {"p50": _delay(0.5), "p99": _delay(0.99)},
            unit="s",
        ),
        Panel(
            "Held for the best",
            "Filters that take the best send when the visit ends, so this is about a visit's length.",
            {"{{choice}}": quantile(0.5, DELAY, "choice")},
            unit="s",
        ),
        Panel(
            "Copies",
            "Copies that Kafka acknowledged in users' and brokers' topics.",
            {"copies": "sum(rate(nightwire_filters_copies_acknowledged_total[1m]))"},
            unit=RATE,
        ),
    ),
)

ALERTS = Row(
    "What becomes of alerts",
    (
        Panel(
            "Passed most",
            "Alerts a second that passed, the ten filters that pass most.",
            {"{{filter}}": _top("sum by (filter) (rate(nightwire_filters_alerts_passed_total[5m]))")},
            unit=RATE,
        ),
        Panel(
            "Cut off most",
            "Alerts a second that passed above the number a visit; `nightwire filter overflow` fetches them.",
            {"{{filter}}": _top("sum by (filter) (rate(nightwire_filters_alerts_capped_total[5m]))")},
            unit=RATE,
            empty="until a cap was reached",
        ),
        Panel(
            "Failed most",
            "Alerts a second on which a filter failed: its owner's concern, and no other filter's.",
            {"{{filter}}": _top("sum by (filter) (rate(nightwire_filters_alerts_faulted_total[5m]))")},
            unit=RATE,
        ),
        Panel(
            "What stopped most",
            "Of a sample of what each filter did not pass, the condition that stopped most, and its share.",
            {"share": "max by (filter, condition) (nightwire_filters_stopped_most_ratio)"},
            unit="percentunit",
            kind=Kind.TABLE,
            width=16,
        ),
        Panel(
            "Pass nothing",
            "Filters that judged more than a thousand alerts in three days and passed none.",
            {"{{stage}}": "nightwire:filter_starved"},
            empty="while every filter passes something within three days",
        ),
    ),
)

COSTS = Row(
    "Costs and the sandbox",
    (
        Panel(
            "Dearest filters",
            "Share of a core that judging takes. What compiled filters have in common is shared among them.",
            {"{{filter}}": _top(CPU)},
            unit="percentunit",
        ),
        Panel(
            "Dearest for an alert",
            "CPU time that a filter takes for an alert.",
            {"{{filter}}": _top(f"1e6 * {CPU} / ({JUDGED})")},
            unit="µs",
        ),
        Panel(
            "Columns and sandbox",
            "Share of a core that compiled filters take together, and those judged alert by alert.",
            {"{{way}}": "sum by (way) (rate(nightwire_filters_cpu_seconds_total[5m]))"},
            unit="percentunit",
        ),
        Panel(
            "Too slow",
            "Filters that had to be stopped in a batch; after two such batches one is suspended.",
            {"{{filter}}": _top("sum by (filter) (increase(nightwire_filters_late_total[5m]))")},
            empty="until a filter was too slow",
        ),
        Panel(
            "Suspensions",
            "When filters were suspended; `nightwire filter log NAME --owner OWNER` says why.",
            {"{{filter}}": "sum by (filter) (nightwire_filters_suspensions_total)"},
            empty="until a filter was suspended",
        ),
    ),
)

FILTERS: tuple[Row, ...] = (NOW, BATCHES, SLOW, DELAYS, ALERTS, COSTS)
