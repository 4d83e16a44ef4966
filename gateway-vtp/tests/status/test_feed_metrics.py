"""Gateways that speak TLS to one another, test events, and what their pages show."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from nightwire.core.stack import free_port
from nightwire.gateway import author_packet
from nightwire.gateway.voevent.test_event import is_test_of
from tests._voevents import packet
from tests._waiting import until

pytestmark = pytest.mark.kafka

Start = Callable[..., Any]
"""Starts a gateway with options: a `GatewayProcess` of conftest."""


def nightwire(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nightwire.core.cli", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def status(gateway: Any) -> dict[str, Any]:
    found: dict[str, Any] = httpx.get(f"http://127.0.0.1:{gateway.metrics}/status.json").json()
    return found


def test_a_gateway_speaks_tls_to_authors_and_to_another_which_shows_what_comes(
    start_gateway: Start, certificates: tuple[Path, Path], ivorns: Callable[[int], list[str]], tmp_path: Path
) -> None:
    ca, ours = certificates
    author_port, subscriber_port = free_port(), free_port()
    authors, subscribers = f"tls://127.0.0.1:{author_port}", f"tls://127.0.0.1:{subscriber_port}"
    by_tls = ("--authors", authors, "--subscribers", subscribers, "--tls-cert", str(ours))
    mine = ("--ivorn", "ivo://seen.test/one", "--test-event", "1s")
    one = start_gateway(*by_tls, *mine, name="one", authors=author_port, subscribers=subscriber_port)
    two = start_gateway("--remote", subscribers, "--tls-ca", str(ca), "--no-accounts", name="two")
    until(lambda: status(two)["remotes"][0]["connected"], "a connection by TLS")
    event = tmp_path / "event.xml"
    event.write_bytes(packet(ivorns(1)[0]))
    trusting = ("--tls-ca", str(ca))
    assert nightwire("send", "--to", authors, *trusting, str(event)).returncode == 0
    refused = nightwire("send", "--to", authors, "--patience", "0", str(event))
    assert "CERTIFICATE_VERIFY_FAILED" in refused.stdout
    assert "ivo://seen.test/one" in nightwire("gateway", "ping", subscribers, *trusting).stdout
    asked = nightwire("gateway", "test", "--to", authors, *trusting, "--ivorn", "ivo://seen.test/me")
    assert asked.stdout.startswith("ack    ivo://seen.test/me#TestEvent-")
    until(lambda: status(two)["remotes"][0]["events"] >= 3, "events over TLS")
    shown = nightwire("gateway", "status", "--page", f"127.0.0.1:{one.metrics}", "--json")
    told = json.loads(shown.stdout)
    assert told["gateway"] == "ivo://seen.test/one"
    assert ("author", "tls") in {(row["role"], row["reason"]) for row in told["refused"]}
    assert "<title>ivo://seen.test/one" in httpx.get(f"http://127.0.0.1:{one.metrics}/").text


def test_test_events_are_valid_say_whose_they_are_and_come_again_and_again(
    start_gateway: Start, telescope: Callable[..., Any], metric: Callable[..., float]
) -> None:
    gateway = start_gateway("--ivorn", "ivo://seen.test/broker", "--test-event", "1s")
    packets = [author_packet(document) for document in telescope(gateway.subscribers).wait_for(2)]
    assert {packet.role for packet in packets} == {"test"}
    assert all(is_test_of("ivo://seen.test/broker", packet.ivorn) for packet in packets)
    assert len({packet.ivorn for packet in packets}) == 2
    assert metric(gateway, 'nightwire_gateway_feed_events_total{feed="voevents",role="test"}') >= 2
    silent_since = metric(gateway, 'nightwire_gateway_feed_last_event_timestamp_seconds{feed="voevents"}')
    assert silent_since > 1.7e9
