"""The page of a process tells its health from its first answer on, to other machines by TLS."""

import ssl
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry

from nightwire.core.runtime import MetricsPage
from nightwire.core.runtime.process import PageError
from nightwire.core.stack import free_port
from nightwire.core.tls.site import Site
from nightwire.schemas.serving import wsgi


@pytest.mark.slow
def test_a_page_never_answers_by_another_app_than_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    apps: list[Any] = []
    make = wsgi.make_server

    def noted(host: str, port: int, app: Any, *rest: Any) -> Any:
        apps.append(app)
        return make(host, port, app, *rest)

    monkeypatch.setattr(wsgi, "make_server", noted)
    page = MetricsPage(CollectorRegistry(), healthy=lambda: True)
    port = page.start()
    try:
        with urlopen(f"http://127.0.0.1:{port}/health") as answer:
            assert answer.read() == b"OK\n"
        assert apps == [page._page]
    finally:
        page.stop()


def test_another_machine_asks_by_tls_with_a_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, port = Site(tmp_path), free_port()
    site.init()
    names = {"ADDRESS": f"127.0.0.1:{port}", "CERT": site.server, "CLIENT_CA": site.ca}
    for name, value in names.items():
        monkeypatch.setenv(f"NIGHTWIRE_METRICS_TLS_{name}", str(value))
    page, url = MetricsPage(CollectorRegistry()), f"https://127.0.0.1:{port}/health"
    page.start()
    stranger = ssl.create_default_context(cafile=site.ca)
    known = ssl.create_default_context(cafile=site.ca)
    known.load_cert_chain(site.add_client("prometheus"))
    try:
        with urlopen(url, context=known, timeout=60) as answer:
            assert answer.read() == b"OK\n"
        with pytest.raises((URLError, OSError)):
            urlopen(url, context=stranger, timeout=60).read()
        with pytest.raises((URLError, OSError)):
            urlopen(f"http://127.0.0.1:{port}/health", timeout=60).read()
    finally:
        page.stop()


def test_tls_without_a_certificate_says_what_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NIGHTWIRE_METRICS_TLS_ADDRESS", "127.0.0.1:0")
    page = MetricsPage(CollectorRegistry())
    with pytest.raises(PageError, match="NIGHTWIRE_METRICS_TLS_CERT"):
        page.start()
    page.stop()
