"""Configuration of Prometheus and Alertmanager, and the files that are written from code.

`generated_files` needs Grafana's library, and is imported where those files are written.
"""

from nightwire.monitoring.config.alertmanager import alertmanager_config
from nightwire.monitoring.config.prometheus import (
    Job,
    prepare_prometheus,
    prometheus_config,
    replace_process,
    rules,
)

__all__ = [
    "Job",
    "alertmanager_config",
    "prepare_prometheus",
    "prometheus_config",
    "replace_process",
    "rules",
]
