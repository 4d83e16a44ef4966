"""What an owner does with filters at the portal, and what strangers do not."""

import httpx
import pytest

from portal.tests.filters.conftest import PASSWORDS, Site, sign_in, token_in

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

BRIGHT = "def keep(alert):\n    return alert.snr > 10 and alert.magnitude < 21\n"


def fill(
    http: httpx.Client, action: str, text: str = BRIGHT, language: str = "python", **more: str
) -> httpx.Response:
    """Fill in the editor, and press one of its buttons."""
    form = {"token": token_in(http.get("/filters/new").text), "survey": "sim", "language": language}
    return http.post("/filters/new", data={**form, "text": text, "action": action, "last": "300", **more})


def test_a_filter_is_tried_submitted_and_passes_alerts(site: Site) -> None:
    with site.browsing("ann") as http:
        tried = fill(http, "try").text
        print(tried)
        assert "7 of 300" in tried or "6 of 300" in tried
        done = fill(http, "submit", name="bright").text
        print(done)
        assert "is live in version 1" in done
        print(http.get("/filters").text)
        print(http.get("/filters/of/bright").text)
        assert 0
