"""To whom a password is shown without encryption."""

import pytest

from nightwire.core.presence import SiteHttpError, whom_to_trust

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
