"""Put alerts in: a pipeline's own, simulated ones, or files.

Names are imported when they are asked for, so that `nightwire --help` need not wait for NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nightwire.producer._alerts import Visits
    from nightwire.producer._sky import Sky, VisitLog
    from nightwire.producer._visit_writer import VisitWriter
    from nightwire.producer._writer import AlertWriter

__all__ = ["AlertWriter", "Sky", "VisitLog", "VisitWriter", "Visits"]

_HOMES = {
    "AlertWriter": "_writer",
    "Sky": "_sky",
    "VisitLog": "_sky",
    "VisitWriter": "_visit_writer",
    "Visits": "_alerts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
