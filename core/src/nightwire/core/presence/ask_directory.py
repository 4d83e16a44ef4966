"""Questions to the directory's process of a site."""

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from nightwire.core.kafka import login, shown_token
from nightwire.core.presence.site_http import NobodyAnswersError, request
from nightwire.core.runtime import Endpoints

if TYPE_CHECKING:
    import httpx

SITE_HEADER = "Nightwire-Site"
"""Header of an answer: whose directory this is, percent-encoded."""


def ask_directory(where: Endpoints, method: str, path: str, **more: Any) -> "httpx.Response":
    """Return the answer of the directory's process, which we ask as whom we are in Kafka.

    Args:
        where: The site's addresses.
        method: HTTP's.
        path: Such as ``/query``.
        more: What `request` takes.

    Raises:
        NobodyAnswersError: Nobody answers, or no directory is known.
        SiteHttpError: It refuses.
    """
    if where.directory is None:
        raise NobodyAnswersError("no directory is known")
    own = where.kafka
    return request(method, where.directory + path, login=login(own), token=shown_token(own), **more)


def home_header(site: str) -> dict[str, str]:
    """Return the header by which the directory of *site* says whose it is."""
    return {SITE_HEADER: quote(site)}


def home_of(answer: "httpx.Response") -> str:
    """Return the site whose directory gave *answer*; empty where that is not said."""
    return unquote(answer.headers.get(SITE_HEADER, ""))
