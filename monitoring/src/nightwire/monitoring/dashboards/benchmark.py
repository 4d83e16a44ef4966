"""The dashboard *benchmark*: what one watches while `make bench` runs, and what limits it."""

from nightwire.monitoring.dashboards.kafka import AGENT, HEAP
from nightwire.monitoring.dashboards.machines import BUSY
from nightwire.monitoring.dashboards.machines import EMPTY as NO_NODE
from nightwire.monitoring.dashboards.panel import RATE, Panel, Row, number_panel, quantile

OURS = 'topic=~"(alerts|bench|filter|broker)[.].+|voevents"'
"""Topics that a benchmark fills."""

NOW = Row(
    "Now",
    (
        number_panel(
            "Records a second",
            "What all topics took; a benchmark's own begin with `bench.`.",
            {"records": "sum(rate(nightwire_topic_records_total[30s]))"},
            unit=RATE,
        ),
        number_panel("Missing", "In = out, also now.", {"missing": "nightwire:missing"}, red_above=1),
        number_panel(
            "Furthest behind",
            "Records that a stage has not accounted for yet.",
            {"behind": "nightwire:lag:worst"},
        ),
        number_panel(
            "CPU",
            "Share of all cores; at 1 the machine is what is measured.",
            {"{{instance}}": BUSY},
            unit="percentunit",
            empty=NO_NODE,
        ),
        number_panel(
            "Taken by others",
            "Share of the CPU that the host gave to other guests: above 0.05 measure again.",
            {"steal": 'avg(rate(node_cpu_seconds_total{mode="steal"}[1m]))'},
            unit="percentunit",
            red_above=0.05,
            empty=NO_NODE,
        ),
        number_panel(
            "Idle: Kafka's threads",
            "Share of their time; below a third Kafka is what is measured.",
            {"{{instance}}": "kafka_server_requesthandler_idle_ratio"},
            unit="percentunit",
            red_below=0.3,
            empty=AGENT,
        ),
    ),
)

THROUGHPUT = Row(
    "Throughput",
    (
        Panel(
            "Records, by topic",
            "Records a second, the ten topics that take most.",
            {"{{topic}}": f"topk(10, rate(nightwire_topic_records_total{{{OURS}}}[30s]))"},
            unit=RATE,
        ),
        Panel(
            "Bytes through Kafka",
            "Bytes a second, in from producers and out to consumers.",
            {
                "in": "sum(rate(kafka_server_bytesin_total[30s]))",
                "out": "sum(rate(kafka_server_bytesout_total[30s]))",
            },
            unit="Bps",
            empty=AGENT,
        ),
        Panel(
            "Judged",
            "Alerts a second that the filters judged.",
            {"{{source}}": "rate(nightwire_filters_records_judged_total[30s])"},
            unit=RATE,
        ),
    ),
)

LATENCY = Row(
    "Latency",
    (
        Panel(
            "Producer to a filter's topic",
            "From Kafka's timestamp of an alert to the acknowledged copy, of filters that take the first.",
            {
                f"p{share * 100:g}": quantile(share, "nightwire_filters_delay_seconds", choice="first")
                for share in (0.5, 0.99)
            },
            unit="s",
        ),
        Panel(
            "Time of a batch",
            "Of the filters: half, and 99 of 100 of them.",
            {
                f"p{share * 100:g}": quantile(share, "nightwire_filters_batch_seconds")
                for share in (0.5, 0.99)
            },
            unit="s",
        ),
        Panel(
            "Kafka's time of a Produce, p99",
            "From the last byte of a request to its answer.",
            {"p99": 'max(kafka_network_request_seconds{quantile="0.99", request="Produce"})'},
            unit="s",
            empty=AGENT,
        ),
    ),
)

COSTS = Row(
    "What it costs",
    (
        Panel(
            "CPU by kind",
            "Cores taken, by what they do.",
            {"{{mode}}": 'sum by (mode) (rate(node_cpu_seconds_total{mode!="idle"}[30s]))'},
            empty=NO_NODE,
        ),
        Panel(
            "Memory",
            "Bytes: available to programs, and Kafka's heap.",
            {
                "available": "node_memory_MemAvailable_bytes",
                "Kafka's heap": f"sum(jvm_memory_used_bytes{HEAP})",
            },
            unit="bytes",
            empty=f"{NO_NODE}, or {AGENT}",
        ),
        Panel(
            "Written to disks",
            "Bytes a second.",
            {"{{device}}": "sum by (device) (rate(node_disk_written_bytes_total[30s]))"},
            unit="Bps",
            empty=NO_NODE,
        ),
        Panel(
            "Between processes, and out",
            "Bytes a second that the network devices sent; *lo* is this machine to itself.",
            {"{{device}}": "sum by (device) (rate(node_network_transmit_bytes_total[30s]))"},
            unit="Bps",
            empty=NO_NODE,
        ),
        Panel(
            "Kafka's logs",
            "Bytes on disk; a benchmark deletes its topics, so it comes back to where it was.",
            {"bytes": "sum(kafka_log_size_bytes)"},
            unit="bytes",
            empty=AGENT,
        ),
        Panel(
            "Kafka's CPU",
            "Cores that the brokers take.",
            {"{{instance}}": 'rate(process_cpu_seconds_total{job="kafka"}[30s])'},
            empty=AGENT,
        ),
    ),
)

BENCH: tuple[Row, ...] = (NOW, THROUGHPUT, LATENCY, COSTS)
