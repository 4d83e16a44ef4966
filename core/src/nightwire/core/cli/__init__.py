"""The command `nightwire`, and what its verbs share: options, parameter types, progress, tables."""

from typing import TYPE_CHECKING

from nightwire.core.cli.options import (
    bootstrap_option,
    duration_option,
    json_option,
    metrics_port_option,
    registry_option,
    with_options,
)
from nightwire.core.cli.parameter_types import Duration, parse_duration, survey_option
from nightwire.core.cli.verbs import main
from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.core.cli.progress_bar import Meter, progress
    from nightwire.core.cli.topics import apply

__all__ = [
    "Duration",
    "Meter",
    "apply",
    "bootstrap_option",
    "duration_option",
    "json_option",
    "main",
    "metrics_port_option",
    "parse_duration",
    "progress",
    "registry_option",
    "survey_option",
    "with_options",
]

__getattr__ = on_demand(__name__, {"Meter": "progress_bar", "apply": "topics", "progress": "progress_bar"})
