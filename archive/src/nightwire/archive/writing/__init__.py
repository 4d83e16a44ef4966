"""From Kafka into the tables: columns, accounts, schedules, and the loop."""

from nightwire.archive.writing.columns import CANONICAL, OURS, healpix, index_rows
from nightwire.archive.writing.drain import GROUP, PATIENCE, Batching, Drain, is_transient
from nightwire.archive.writing.ledger import STAGE, Ledger
from nightwire.archive.writing.schedules import SCHEDULES, Schedule
from nightwire.archive.writing.survey_writer import SurveyWriter

__all__ = [
    "CANONICAL",
    "GROUP",
    "OURS",
    "PATIENCE",
    "SCHEDULES",
    "STAGE",
    "Batching",
    "Drain",
    "Ledger",
    "Schedule",
    "SurveyWriter",
    "healpix",
    "index_rows",
    "is_transient",
]
