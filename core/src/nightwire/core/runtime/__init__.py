"""What every process needs: signals, logs, metrics page, addresses, Java, pacing, state folders."""

from nightwire.core.runtime import java_classes
from nightwire.core.runtime.apart import ApartError, Bounds, ask_apart
from nightwire.core.runtime.credentials import stack_credentials
from nightwire.core.runtime.endpoints import (
    Endpoints,
    NoStackError,
    find_endpoints,
    process_started,
    site_name,
    state_dir,
)
from nightwire.core.runtime.installation import install_command, missing_packages
from nightwire.core.runtime.java import NoJavaError, java_home
from nightwire.core.runtime.pacing import Backoff, Lateness, LogLimiter, now_ms, on_time
from nightwire.core.runtime.ports import free_port
from nightwire.core.runtime.process import (
    MetricsPage,
    Page,
    Stop,
    clean_environment,
    die_with_parent,
    setup_logging,
    stopping,
    tune_garbage_collector,
)
from nightwire.core.runtime.state_folder import FolderInUseError, StateError, lock_folder, refused_version

__all__ = [
    "ApartError",
    "Backoff",
    "Bounds",
    "Endpoints",
    "FolderInUseError",
    "Lateness",
    "LogLimiter",
    "MetricsPage",
    "NoJavaError",
    "NoStackError",
    "Page",
    "StateError",
    "Stop",
    "ask_apart",
    "clean_environment",
    "die_with_parent",
    "find_endpoints",
    "free_port",
    "install_command",
    "java_classes",
    "java_home",
    "lock_folder",
    "missing_packages",
    "now_ms",
    "on_time",
    "process_started",
    "refused_version",
    "setup_logging",
    "site_name",
    "stack_credentials",
    "state_dir",
    "stopping",
    "tune_garbage_collector",
]
