"""From Kafka into the tables: columns, accounts, schedules, and the consumer."""

from nightwire.archive.writing.accounts import STAGE, ArchiveAccounts
from nightwire.archive.writing.columns import CANONICAL, COMMON, healpix, index_rows
from nightwire.archive.writing.consumer import GROUP, RETRY_DELAY, ArchiveConsumer, Batching, is_transient
from nightwire.archive.writing.schedules import SCHEDULES, Schedule
from nightwire.archive.writing.survey_writer import SurveyWriter

__all__ = [
    "CANONICAL",
    "COMMON",
    "GROUP",
    "RETRY_DELAY",
    "SCHEDULES",
    "STAGE",
    "ArchiveAccounts",
    "ArchiveConsumer",
    "Batching",
    "Schedule",
    "SurveyWriter",
    "healpix",
    "index_rows",
    "is_transient",
]
