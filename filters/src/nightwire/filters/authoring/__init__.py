"""The owner's side: a notebook's submitted source, a trial on a sample, requests."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.authoring.api import try_on_recent
    from nightwire.filters.authoring.client import (
        BACKFILL,
        BACKFILL_ENDED,
        BACKFILL_STOPPED,
        NoAnswerError,
        Submission,
        file_source,
        length_since,
        send_request,
        shaped,
        text_submission,
    )
    from nightwire.filters.authoring.page import light_curve_svg
    from nightwire.filters.authoring.report import JudgedAlert
    from nightwire.filters.authoring.watchlist import TRIED, near_targets, watchlist_text

__all__ = [
    "BACKFILL",
    "BACKFILL_ENDED",
    "BACKFILL_STOPPED",
    "TRIED",
    "JudgedAlert",
    "NoAnswerError",
    "Submission",
    "file_source",
    "length_since",
    "light_curve_svg",
    "near_targets",
    "send_request",
    "shaped",
    "text_submission",
    "try_on_recent",
    "watchlist_text",
]

__getattr__ = on_demand(__name__)
