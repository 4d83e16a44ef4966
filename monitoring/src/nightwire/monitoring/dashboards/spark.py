"""The dashboard *Spark*: the filters' query and its executors, by Spark's own metrics."""

from nightwire.monitoring.dashboards.panel import RATE, Panel, Row, number_panel

QUERY = "metrics_filters_driver_spark_streaming_filters"
"""Spark's names of the query `filters`: namespace, source, query, gauge."""
DRIVER, WORKER = "metrics_filters_driver", "metrics_executor"
LIGHT = "with the light engine (`nightwire up --light`)"


def _by_worker(counter: str) -> str:
    return f"sum by (executor_id) ({WORKER}_{counter})"


BATCHES = Row(
    "The query",
    (
        number_panel("Spark", "Its version.", {"{{version}}": "max by (version) (spark_info)"}, named=True),
        number_panel(
            "A batch",
            "Time of the last batch, from its plan to its commit.",
            {"last": f"max({QUERY}_latency_Value) / 1000"},
            unit="s",
            red_above=10,
        ),
        number_panel(
            "Workers",
            "Executors that Spark has; with one machine the driver is the only one.",
            {"executors": f"count({WORKER}_maxMemory_bytes)"},
            red_below=1,
        ),
        number_panel("Cores", "Tasks that can run at once.", {"cores": f"sum({WORKER}_maxTasks)"}),
        number_panel(
            "Failed tasks",
            "Tasks that were done again within ten minutes: a worker died, or a filter took it along.",
            {"failed": f"sum(increase({WORKER}_failedTasks_total[10m]))"},
            red_above=1,
        ),
        number_panel(
            "Failed jobs",
            "Batches that had to be started again within ten minutes.",
            {"failed": f"sum(increase({DRIVER}_appStatus_jobs_failedJobs_Count[10m]))"},
            red_above=1,
        ),
        Panel(
            "Time of a batch",
            "As Spark measures it.",
            {"a batch": f"max({QUERY}_latency_Value) / 1000"},
            unit="s",
        ),
        Panel(
            "Rates",
            "Rows a second that came, and that Spark could do: rows are what passed, not alerts.",
            {
                "came": f"max({QUERY}_inputRate_total_Value)",
                "could be done": f"max({QUERY}_processingRate_total_Value)",
            },
            unit=RATE,
        ),
        Panel(
            "State",
            "What Spark keeps from batch to batch. Ours is in decisions, so this stays 0.",
            {"rows": f"max({QUERY}_states_rowsTotal_Value)", "bytes": f"max({QUERY}_states_usedBytes_Value)"},
        ),
    ),
    empty=LIGHT,
)

WORK = Row(
    "Who works",
    (
        Panel(
            "Tasks",
            "Tasks a second that ended, and that run now.",
            {
                "{{executor_id}}": f"sum by (executor_id) (rate({WORKER}_completedTasks_total[1m]))",
                "running, {{executor_id}}": _by_worker("activeTasks"),
            },
        ),
        Panel(
            "Busy",
            "Share of the time in which a batch is under way. Spark's own counter tells a lone driver's age.",
            {"batches": "sum(rate(nightwire_filters_batch_seconds_sum[1m]))"},
            unit="percentunit",
        ),
        Panel(
            "Collecting garbage",
            "Share of the time that Java took for it.",
            {"{{executor_id}}": f"sum by (executor_id) (rate({WORKER}_totalGCTime_seconds_total[1m]))"},
            unit="percentunit",
        ),
        Panel(
            "Java's memory",
            "Most that was taken at once, by executor. Python's workers are beside it.",
            {
                "heap, {{executor_id}}": _by_worker("JVMHeapMemory_bytes"),
                "beside it, {{executor_id}}": _by_worker("JVMOffHeapMemory_bytes"),
            },
            unit="bytes",
        ),
        Panel(
            "Memory for data",
            "Bytes that blocks take, and the most they may.",
            {
                "{{executor_id}}": _by_worker("memoryUsed_bytes"),
                "most, {{executor_id}}": _by_worker("maxMemory_bytes"),
            },
            unit="bytes",
        ),
        Panel(
            "The driver's CPU",
            "Cores that the driver's Java takes.",
            {"driver": f"sum(rate({DRIVER}_JVMCPU_jvmCpuTime_Value[1m])) / 1e9"},
        ),
    ),
    empty=LIGHT,
)

SPARK: tuple[Row, ...] = (BATCHES, WORK)
