"""Runtime."""

from nightwire.core.runtime.endpoints import Endpoints, NoStackError, find_endpoints, process_started
from nightwire.core.runtime.java import java_home
from nightwire.core.runtime.pacing import Lateness, now_ms, on_time
from nightwire.core.runtime.process import MetricsPage, Page, Stop, setup_logging, stopping

__all__ = [
    "Endpoints",
    "Lateness",
    "MetricsPage",
    "NoStackError",
    "Page",
    "Stop",
    "find_endpoints",
    "java_home",
    "now_ms",
    "on_time",
    "process_started",
    "setup_logging",
    "stopping",
]
