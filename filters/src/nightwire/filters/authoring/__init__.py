"""The owner's side: a notebook's submitted source, a trial on a sample, requests."""

from typing import TYPE_CHECKING

from nightwire.schemas.lazy import on_demand

if TYPE_CHECKING:
    from nightwire.filters.authoring.api import try_on_recent
    from nightwire.filters.authoring.client import (
        NoAnswerError,
        Submission,
        file_source,
        send_request,
        text_submission,
    )
    from nightwire.filters.authoring.page import light_curve_svg
    from nightwire.filters.authoring.report import JudgedAlert, Report

__all__ = [
    "JudgedAlert",
    "NoAnswerError",
    "Report",
    "Submission",
    "file_source",
    "light_curve_svg",
    "send_request",
    "text_submission",
    "try_on_recent",
]

__getattr__ = on_demand(
    __name__,
    {
        "JudgedAlert": "report",
        "NoAnswerError": "client",
        "Report": "report",
        "Submission": "client",
        "file_source": "client",
        "light_curve_svg": "page",
        "send_request": "client",
        "text_submission": "client",
        "try_on_recent": "api",
    },
)
