"""Put alerts in: a pipeline's own, simulated ones, or files.

Names are imported when they are asked for, so that `nightwire --help` need not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightwire.producer.simulation.alerts import Visits
    from nightwire.producer.simulation.sky import Sky, VisitLog
    from nightwire.producer.writing.visit_writer import VisitWriter
    from nightwire.producer.writing.writer import AlertWriter

__all__ = ["AlertWriter", "Sky", "VisitLog", "VisitWriter", "Visits"]

_HOMES = {
    "AlertWriter": "writing.writer",
    "Sky": "simulation.sky",
    "VisitLog": "simulation.sky",
    "VisitWriter": "writing.visit_writer",
    "Visits": "simulation.alerts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
