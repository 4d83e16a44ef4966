"""The page of a process tells its health from its first answer on."""

from typing import Any
from urllib.request import urlopen

import pytest
from prometheus_client import CollectorRegistry

from nightwire.core.runtime import MetricsPage
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
