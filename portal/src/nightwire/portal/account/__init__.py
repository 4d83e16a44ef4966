"""Who a browser is: its session, its forms with CSRF tokens, the limit of its requests."""

from nightwire.portal.account.csrf import CSRF_HEADER, check_csrf_token, csrf_token
from nightwire.portal.account.forms import Form, local_path, read_form
from nightwire.portal.account.rate_limiter import RateLimiter, address_of
from nightwire.portal.account.sessions import Sessions

__all__ = [
    "CSRF_HEADER",
    "Form",
    "RateLimiter",
    "Sessions",
    "address_of",
    "check_csrf_token",
    "csrf_token",
    "local_path",
    "read_form",
]
