"""The command `nightwire`, and what its verbs share: options, parameter types, progress, tables."""

from typing import TYPE_CHECKING

from nightwire.core.cli import completion
from nightwire.core.cli.options import (
    DOOR_OPTIONS,
    bootstrap_option,
    duration_option,
    json_option,
    metrics_port_option,
    reached,
    registry_option,
    service_of,
    service_options,
    wide_option,
    with_options,
)
from nightwire.core.cli.parameter_types import Duration, Size, parse_duration, survey_option
from nightwire.core.cli.verbs import main
from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.core.cli.progress_bar import Meter, progress
    from nightwire.core.cli.tables import Cell, Column, Listing, show_tables
    from nightwire.core.cli.topics import apply

__all__ = [
    "DOOR_OPTIONS",
    "Cell",
    "Column",
    "Duration",
    "Listing",
    "Meter",
    "Size",
    "apply",
    "bootstrap_option",
    "completion",
    "duration_option",
    "json_option",
    "main",
    "metrics_port_option",
    "parse_duration",
    "progress",
    "reached",
    "registry_option",
    "service_of",
    "service_options",
    "show_tables",
    "survey_option",
    "wide_option",
    "with_options",
]

__getattr__ = on_demand(__name__)
