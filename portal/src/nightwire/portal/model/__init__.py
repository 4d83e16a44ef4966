"""What is known of recent alerts, and questions about them: pure."""

from nightwire.portal.model.curve import Measured, as_columns, curve_of
from nightwire.portal.model.recent import Recent
from nightwire.portal.model.rows import VOEVENT, Classified, Row, rows_of
from nightwire.portal.model.search import Position, Question, parse
from nightwire.portal.model.sky import circle, density, moc

__all__ = [
    "VOEVENT",
    "Classified",
    "Measured",
    "Position",
    "Question",
    "Recent",
    "Row",
    "as_columns",
    "circle",
    "curve_of",
    "density",
    "moc",
    "parse",
    "rows_of",
]
