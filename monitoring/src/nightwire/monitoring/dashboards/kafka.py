"""The dashboard *Kafka*, by its JMX agent: traffic, latencies, logs, replicas, memory."""

from nightwire.monitoring.dashboards.panel import RATE, Panel, Row, number_panel

AGENT = "where Kafka's JMX agent does not run (`nightwire up --jmx`)"
HEAP = '{area="heap", job="kafka"}'


def _rate(counter: str) -> str:
    return f"sum(rate({counter}[1m]))"


HEALTH = Row(
    "Health",
    (
        number_panel("Brokers", "Brokers in the cluster.", {"brokers": "nightwire_kafka_brokers"}),
        number_panel(
            "Under-replicated",
            "Partitions with a copy that is not in step: a broker is down, or a disk is slow.",
            {"partitions": "nightwire_kafka_under_replicated_partitions"},
            red_above=1,
        ),
        number_panel(
            "Offline",
            "Partitions without a leader: neither read nor written.",
            {"partitions": "nightwire_kafka_offline_partitions"},
            red_above=1,
        ),
    ),
)

BROKER = Row(
    "By the brokers themselves",
    (
        number_panel(
            "Active controllers",
            "One, in the whole cluster.",
            {"active": "sum(kafka_controller_activecontrollercount)"},
            red_below=1,
        ),
        number_panel(
            "Below the least copies",
            "Partitions that refuse writes until enough copies are in step.",
            {"partitions": "sum(kafka_server_underminisrpartitioncount)"},
            red_above=1,
        ),
        number_panel(
            "Failed requests",
            "Requests to write and to read that failed within five minutes.",
            {
                "failed": "sum(increase(kafka_server_failedproducerequests_total[5m]))"
                " + sum(increase(kafka_server_failedfetchrequests_total[5m]))"
            },
            red_above=1,
        ),
        number_panel(
            "Idle: requests",
            "Share of the request threads' time that is idle; below a third the broker is the limit.",
            {"{{instance}}": "kafka_server_requesthandler_idle_ratio"},
            unit="percentunit",
            red_below=0.3,
        ),
        number_panel(
            "Idle: network",
            "The same of the network threads.",
            {"{{instance}}": "kafka_network_processor_idle_ratio"},
            unit="percentunit",
            red_below=0.3,
        ),
        number_panel(
            "Heap",
            "Share of Java's heap that is taken.",
            {
                "{{instance}}": f"sum by (instance) (jvm_memory_used_bytes{HEAP})"
                f" / sum by (instance) (jvm_memory_max_bytes{HEAP})"
            },
            unit="percentunit",
            red_above=0.95,
        ),
    ),
    empty=AGENT,
)

TRAFFIC = Row(
    "Traffic",
    (
        Panel(
            "Bytes",
            "Bytes a second from producers and to consumers.",
            {"in": _rate("kafka_server_bytesin_total"), "out": _rate("kafka_server_bytesout_total")},
            unit="Bps",
        ),
        Panel("Records", "Records a second.", {"in": _rate("kafka_server_messagesin_total")}, unit=RATE),
        Panel(
            "Between brokers",
            "Bytes a second of copies.",
            {
                "in": _rate("kafka_server_replicationbytesin_total"),
                "out": _rate("kafka_server_replicationbytesout_total"),
            },
            unit="Bps",
            empty="with one broker, which copies to nobody",
        ),
        Panel(
            "Requests",
            "Requests a second, by what they ask.",
            {"{{request}}": "sum by (request) (rate(kafka_network_requests_total[1m]))"},
            unit=RATE,
        ),
        Panel(
            "Time of a request, p99",
            "From its last byte to its answer; a Fetch waits for records, so look at Produce.",
            {"{{request}}": 'max by (request) (kafka_network_request_seconds{quantile="0.99"})'},
            unit="s",
        ),
        Panel(
            "Waiting for a thread, p99",
            "Time that a request waited for a thread; it grows first when the broker is the limit.",
            {"{{request}}": 'max by (request) (kafka_network_requestqueue_seconds{quantile="0.99"})'},
            unit="s",
        ),
    ),
    empty=AGENT,
)

LOGS = Row(
    "Logs and memory",
    (
        Panel(
            "Log size, by topic",
            "Bytes on brokers' disks, all copies, the ten largest topics.",
            {"{{topic}}": "topk(10, sum by (topic) (kafka_log_size_bytes))"},
            unit="bytes",
        ),
        Panel(
            "Log size, by broker",
            "Bytes of all topics.",
            {"{{instance}}": "sum by (instance) (kafka_log_size_bytes)"},
            unit="bytes",
        ),
        Panel(
            "Log flushes, p99",
            "Time that the disk took over a flush.",
            {"{{instance}}": 'kafka_log_flush_seconds{quantile="0.99"}'},
            unit="s",
        ),
        Panel(
            "Java's heap",
            "Bytes taken and the most it may take.",
            {
                "{{instance}}": f"sum by (instance) (jvm_memory_used_bytes{HEAP})",
                "most, {{instance}}": f"sum by (instance) (jvm_memory_max_bytes{HEAP})",
            },
            unit="bytes",
        ),
        Panel(
            "Collecting garbage",
            "Share of the time that Java stood still to collect garbage.",
            {"{{instance}}": 'sum by (instance) (rate(jvm_gc_collection_seconds_sum{job="kafka"}[1m]))'},
            unit="percentunit",
        ),
        Panel(
            "CPU",
            "Cores that each broker takes.",
            {"{{instance}}": 'rate(process_cpu_seconds_total{job="kafka"}[1m])'},
        ),
    ),
    empty=AGENT,
)

KAFKA: tuple[Row, ...] = (HEALTH, BROKER, TRAFFIC, LOGS)
