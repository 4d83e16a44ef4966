"""The process of the engine."""

from pathlib import Path

from nightwire.core.stack import free_port
from nightwire.filters.decision.engine_state import EngineState, LocalCheckpoint
from nightwire.filters.spark.monitoring import spark_page, watched_lines

SAID = """\
spark_info{version="4.3.0", revision="98bc"} 1.0
metrics_executor_maxMemory_bytes{application_id="local-1", executor_id="driver"} 278357606
metrics_filters_driver_spark_streaming_filters_latency_Number{type="gauges"} 2261
metrics_filters_driver_spark_streaming_filters_latency_Value{type="gauges"} 2261
metrics_filters_driver_appStatus_jobs_failedJobs_Count{type="counters"} 0
metrics_filters_driver_LiveListenerBus_queue_streams_size_Value{type="gauges"} 0
metrics_filters_driver_JVMCPU_jvmCpuTime_Value{type="gauges"} 9910000000
"""


def test_few_of_sparks_lines_are_passed_on() -> None:
    kept = [line.partition("{")[0] for line in watched_lines(SAID).splitlines()]
    assert kept == [
        "spark_info",
        "metrics_executor_maxMemory_bytes",
        "metrics_filters_driver_spark_streaming_filters_latency_Value",
        "metrics_filters_driver_appStatus_jobs_failedJobs_Count",
        "metrics_filters_driver_JVMCPU_jvmCpuTime_Value",
    ]


def test_without_a_spark_its_page_is_empty() -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    for at in (None, nobody):
        kind, body = spark_page(lambda at=at: at)()  # type: ignore[misc]
        assert (kind.partition(";")[0], body) == ("text/plain", b"")


def test_the_local_engines_checkpoint_is_read_like_sparks(tmp_path: Path) -> None:
    state = EngineState(tmp_path, "light")
    progress, end = LocalCheckpoint(state), {"alerts.sim": {"0": 12}, "filters": 57, "visits": 3, "at": 1764}
    assert (state.newest_commit(), state.committed(), progress.planned(0)) == (-1, {}, None)
    progress.plan(0, end)
    assert (progress.planned(0), state.planned(0), state.committed()) == (end, end, {})
    progress.commit(0)
    assert (state.newest_commit(), state.committed(), state.is_committed(0)) == (0, end, True)


def test_old_progress_goes(tmp_path: Path) -> None:
    state = EngineState(tmp_path, "light")
    progress = LocalCheckpoint(state)
    for batch in range(120):
        progress.plan(batch, {"filters": batch})
        progress.commit(batch)
    assert progress.planned(10) is None
    assert state.committed() == {"filters": 119}
