"""The page's files, and the headers that restrict the browser."""

from collections.abc import Mapping
from importlib.resources import files

TYPES = {"index.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
SECURITY_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
"""A browser runs and fetches our files alone, whatever names are shown."""


def static(name: str) -> tuple[str, bytes]:
    """Return media type and bytes of the page's file *name*."""
    return TYPES[name], (files("nightwire.directory.page") / name).read_bytes()
