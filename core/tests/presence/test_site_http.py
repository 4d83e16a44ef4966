"""To whom a password is shown without encryption; who is taken for an archive."""

from contextlib import closing
from http.server import BaseHTTPRequestHandler
from urllib.parse import unquote_to_bytes

import httpx
import pytest

from nightwire.core.presence import ArchiveClient, SiteHttpError, whom_to_trust
from tests._serving import answering

LOGIN = ("ann", "her own password")


def test_a_password_is_seen_on_no_other_network(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("http://127.0.0.1:8083", "http://localhost:8083/query"):
        assert whom_to_trust(url, LOGIN) is False
    with pytest.raises(SiteHttpError, match="https:// alone"):
        whom_to_trust("http://archive:8085", LOGIN)
    assert whom_to_trust("http://archive:8085", None) is False
    assert whom_to_trust("https://archive.example.org", LOGIN)
    monkeypatch.setenv("NIGHTWIRE_PRIVATE_HOSTS", "archive,directory")
    assert whom_to_trust("http://archive:8085", LOGIN) is False
    with pytest.raises(SiteHttpError, match="https:// alone"):
        whom_to_trust("http://other:8085", LOGIN)


class Stranger(BaseHTTPRequestHandler):
    """Answers as the path of its URL says: STATUS/TYPE/SUBTYPE/BODY."""

    def do_GET(self) -> None:
        """Answer."""
        _, status, kind, subtype, body, *_ = self.path.split("/")
        self.send_response(int(status))
        self.send_header("Content-Type", f"{kind}/{subtype}")
        self.end_headers()
        self.wfile.write(unquote_to_bytes(body))


@pytest.mark.parametrize(
    "path",
    [
        "200/text/html/hello",
        "400/text/html/sent%20to%20a%20TLS%20port",
        "200/application/json/[]",
        "200/application/json/{",
        "200/application/json/%7B%22offset%22:%22x%22%7D",
        "200/application/vnd.apache.arrow.stream/rows",
        "200/application/vnd.apache.arrow.stream/",
    ],
)
def test_who_is_no_archive_is_named_as_one_that_does_not_answer(path: str) -> None:
    """So whoever asks it asks again, and takes nothing for expired."""
    with answering(Stranger) as url, closing(ArchiveClient(f"{url}/{path}")) as archive:
        for ask in (
            lambda: archive.records(("alerts.sim", 0), range(9)),
            lambda: archive.first_since(("alerts.sim", 0), 0),
        ):
            with pytest.raises(httpx.HTTPError, match=f"no archive answers at {url}"):
                ask()
