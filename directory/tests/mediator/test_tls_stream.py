"""Server-sent events through the door for other machines: over TLS, as they come."""

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from directory.tests.mediator.test_reading import Topic, fill, group, numbers
from nightwire.core.tls.site import Site

pytestmark = pytest.mark.kafka


@pytest.fixture
def outside(kafka: str, serving: Any, tmp_path: Path) -> Iterator[Any]:
    """Yield a mediator behind the door, asked by who trusts the site's certificate."""
    site = Site(tmp_path)
    site.init()
    with serving(kafka, closed=True, tls=site) as one:
        yield one


def test_events_come_over_tls_one_by_one(outside: Any, kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic()
    fill(kafka, topic, numbers(2))
    url = f"/topics/{topic}/records?as=raw&group={group()}"
    with outside.http.stream("GET", url, headers={"Accept": "text/event-stream"}) as stream:
        ids = (line for line in stream.iter_lines() if line.startswith("id: "))
        assert [next(ids), next(ids)] == ["id: 0:1", "id: 0:2"]
        fill(kafka, topic, numbers(1))
        assert next(ids) == "id: 0:3", "what is written later comes on the same connection"


def test_who_does_not_trust_the_certificate_hears_nothing(outside: Any) -> None:
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        httpx.get(outside.http.base_url, verify=ssl.create_default_context())
