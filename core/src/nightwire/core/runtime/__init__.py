"""What every process needs: signals, logs, metrics page, addresses, Java, pacing, state folders."""

from nightwire.core.runtime import java_classes
from nightwire.core.runtime.endpoints import Endpoints, NoStackError, find_endpoints, process_started
from nightwire.core.runtime.java import java_home
from nightwire.core.runtime.pacing import Backoff, Lateness, LogLimiter, now_ms, on_time
from nightwire.core.runtime.process import MetricsPage, Page, Stop, setup_logging, stopping
from nightwire.core.runtime.state_folder import FolderInUseError, StateError, lock_folder, refused_version

__all__ = [
    "Backoff",
    "Endpoints",
    "FolderInUseError",
    "Lateness",
    "LogLimiter",
    "MetricsPage",
    "NoStackError",
    "Page",
    "StateError",
    "Stop",
    "find_endpoints",
    "java_classes",
    "java_home",
    "lock_folder",
    "now_ms",
    "on_time",
    "process_started",
    "refused_version",
    "setup_logging",
    "stopping",
]
