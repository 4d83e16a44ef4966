"""The figures that the scenario reports, in the order of the report."""

from nightwire.benchmarks.model.scenario import Better, Figure, Published

RAW = "raw librdkafka moving ready-made bytes of the same sizes"
RAW_PACED = "ready-made bytes through raw librdkafka at the same rate"

BOOM = Published(883.0, "BOOM", "25 filters and classifiers, 32 cores")

FIGURES = (
    Figure(
        "encode_produce_consume_decode_seconds",
        "s",
        "One visit, from dictionaries to twenty columns in a second process",
        baseline=RAW,
        headline=True,
    ),
    Figure(
        "encode_produce_consume_decode_dicts_seconds",
        "s",
        "One visit, from dictionaries to dictionaries in a second process",
        baseline=RAW,
        headline=True,
    ),
    Figure(
        "share_of_raw_librdkafka",
        "1",
        "Share of what raw librdkafka moves, to twenty columns",
        Better.HIGHER,
        RAW,
        share_of="alerts_per_second",
        headline=True,
    ),
    Figure("alerts_per_second", "1/s", "Alerts a second, to twenty columns", Better.HIGHER, RAW),
    Figure("megabytes_per_second", "MB/s", "Bytes a second, to twenty columns", Better.HIGHER),
    Figure("encode_seconds", "s", "… of it in the encoder, first process"),
    Figure("produce_seconds", "s", "… from the first dictionary to the last acknowledgement"),
    Figure(
        "produce_alerts_per_second",
        "1/s",
        "Alerts a second from one producer, encoded and acknowledged",
        Better.HIGHER,
    ),
    Figure("consume_seconds", "s", "… from the first to the last message, second process"),
    Figure("columns_seconds", "s", "… of it making columns"),
    Figure("decode_seconds", "s", "Decoding to dictionaries, second process"),
    Figure(
        "to_dicts_alerts_per_second",
        "1/s",
        "Alerts a second from a full topic to dictionaries",
        Better.HIGHER,
        "the slower of raw reading and decoding alone",
        headline=True,
    ),
    Figure(
        "reader_tables_alerts_per_second",
        "1/s",
        "Alerts a second from a full topic to tables of twenty columns, by AlertReader",
        Better.HIGHER,
        "raw reading",
        headline=True,
    ),
    Figure(
        "filter_pass_seconds",
        "s",
        "One visit through the filter engine, until it is accounted for",
        baseline="a plain consumer of the same bytes",
        headline=True,
    ),
    Figure(
        "filter_alerts_per_second",
        "1/s",
        "Alerts a second through three filters",
        Better.HIGHER,
        "a plain consumer of the same bytes",
        published=BOOM,
    ),
    Figure("filter_passed", "1", "Alerts that passed a filter, after caps", Better.HIGHER),
    Figure("latency_p50_ms", "ms", "Due → consumer, median", baseline=RAW_PACED, headline=True),
    Figure("latency_p95_ms", "ms", "Due → consumer, 95 %", baseline=RAW_PACED),
    Figure("latency_p99_ms", "ms", "Due → consumer, 99 %", baseline=RAW_PACED, headline=True),
    Figure("latency_max_ms", "ms", "Due → consumer, slowest", baseline=RAW_PACED),
    Figure("publish_latency_p50_ms", "ms", "Due → acknowledged, median", baseline=RAW_PACED),
    Figure("publish_latency_p99_ms", "ms", "Due → acknowledged, 99 %", baseline=RAW_PACED),
    Figure(
        "filter_latency_p50_ms",
        "ms",
        "Due → filter topic's reader, median",
        baseline=RAW_PACED,
        headline=True,
    ),
    Figure("filter_latency_p99_ms", "ms", "Due → filter topic's reader, 99 %", baseline=RAW_PACED),
    Figure("generator_behind_ms", "ms", "The generator's worst lag behind its schedule"),
)
