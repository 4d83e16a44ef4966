"""What is known of recent alerts, and questions about them: pure."""

from nightwire.portal.model.curve import CurvePoint, as_columns, curve_of
from nightwire.portal.model.mollweide import circle
from nightwire.portal.model.recent import RecentAlerts
from nightwire.portal.model.rows import VOEVENT, Classification, RecordId, Row, rows_of
from nightwire.portal.model.search import Position, SearchQuery, parse_query
from nightwire.portal.model.sky_coverage import density, moc

__all__ = [
    "VOEVENT",
    "Classification",
    "CurvePoint",
    "Position",
    "RecentAlerts",
    "RecordId",
    "Row",
    "SearchQuery",
    "as_columns",
    "circle",
    "curve_of",
    "density",
    "moc",
    "parse_query",
    "rows_of",
]
