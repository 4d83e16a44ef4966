"""The survey's own schema registry, with its password where it wants one."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from nightwire.schemas import SchemaRegistry

USER, PASSWORD = "NIGHTWIRE_SOURCE_REGISTRY_USER", "NIGHTWIRE_SOURCE_REGISTRY_PASSWORD"
"""Variables with the credentials (HTTP basic authentication)."""


@contextmanager
def source_registry(url: str | None, env: Mapping[str, str] = os.environ) -> Iterator[SchemaRegistry | None]:
    """Yield the registry at *url*; None where there is none."""
    if url is None:
        yield None
        return
    import httpx  # takes 0.1 s to import

    class WithPassword(httpx.HTTPTransport):
        """Says who asks; not in the URL, which errors name."""

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            login = httpx.BasicAuth(env.get(USER, ""), env.get(PASSWORD, ""))
            return super().handle_request(next(login.auth_flow(request)))

    transport = WithPassword() if USER in env else None
    with SchemaRegistry(url, transport=transport) as registry:
        yield registry
