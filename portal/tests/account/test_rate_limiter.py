"""Each client has its share of requests; what takes long counts as several."""

import pytest
from starlette.requests import Request

from nightwire.portal.account import RateLimiter
from nightwire.portal.account.rate_limiter import COST
from nightwire.schemas.serving import RefusedError


def asked(path: str, client: str = "192.0.2.1") -> Request:
    """Return a request."""
    return Request({"type": "http", "path": path, "client": (client, 1)})


@pytest.mark.parametrize(
    "path", ["/find", "/api/find", "/sky", "/api/moc", "/api/finder/sim/1", "/static/vendor/aladin.js"]
)
def test_what_takes_long_counts_as_several_requests_of_one_client(path: str) -> None:
    now = [0.0]
    limiter = RateLimiter(rate=1.0, burst=2.0 * COST, clock=lambda: now[0])
    for _ in range(2):
        limiter.check(asked(path))
    with pytest.raises(RefusedError, match="too many requests"):
        limiter.check(asked("/"))
    limiter.check(asked(path, "192.0.2.2"))
    now[0] = COST - 1.0
    with pytest.raises(RefusedError, match="too many requests"):
        limiter.check(asked(path))
    for _ in range(COST - 1):  # who was refused has lost nothing
        limiter.check(asked("/finders"))
    with pytest.raises(RefusedError, match="too many requests"):
        limiter.check(asked("/"))
