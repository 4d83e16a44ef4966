"""Put alerts in: a pipeline's own, simulated ones, or files.

Names are imported when they are asked for, so that `nightwire --help` need not wait for NumPy.
"""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.producer import figures
    from nightwire.producer.simulation.alerts import Visits
    from nightwire.producer.simulation.sky import Sky, VisitLog
    from nightwire.producer.writing.visit_writer import VisitWriter
    from nightwire.producer.writing.writer import AlertWriter

__all__ = ["AlertWriter", "Sky", "VisitLog", "VisitWriter", "Visits", "figures"]

__getattr__ = on_demand(__name__)
