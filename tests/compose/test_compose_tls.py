"""What other machines reach of the compose stack: by TLS, with a password or a certificate."""

import json
import ssl
import subprocess
import sys
from collections.abc import Mapping

import httpx
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.compose.stack import Stack

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1500)]


def refused(user: Mapping[str, str], *words: str) -> str:
    """Run a verb that has to fail; return what it said."""
    command = [sys.executable, "-m", "nightwire.core.cli", *words]
    done = subprocess.run(command, env=dict(user), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode != 0, done.stdout
    return done.stderr


def test_an_owner_reads_alerts_by_tls_and_decodes_them(quiet: Stack, owner: dict[str, str]) -> None:
    outside = owner | quiet.public
    words = ("subscribe", "alerts.sim", "--last", "5", "--no-follow", "--format", "json")
    lines = quiet.nightwire(*words, user=outside).splitlines()
    assert len(lines) == 5
    assert all(json.loads(line)["alert"]["diaSourceId"] for line in lines)


def test_archive_portal_and_directory_answer_by_tls_who_shows_a_password(
    quiet: Stack, owner: dict[str, str]
) -> None:
    login = owner["KAFKA_SASL_USERNAME"], owner["KAFKA_SASL_PASSWORD"]
    trusted = ssl.create_default_context(cafile=quiet.site.ca)
    pages = {"PUBLIC_ARCHIVE": "/surveys", "PUBLIC_PORTAL": "/api/alerts", "PUBLIC_DIRECTORY": "/graph.json"}
    for name, path in pages.items():
        url = f"https://127.0.0.1:{quiet.port(name)}{path}"
        said = [httpx.get(url, verify=trusted, auth=one).status_code for one in (login, None)]
        assert said == [200, 401], name


def test_kafka_says_nothing_without_tls_or_a_password(quiet: Stack, owner: dict[str, str]) -> None:
    names = ("bootstrap.servers", "security.protocol", "ssl.ca.location")
    told = dict(zip(names, list(quiet.public.values())[:3], strict=True))
    login = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": owner["KAFKA_SASL_USERNAME"]}
    for less in (
        told | {"security.protocol": "PLAINTEXT"},
        told | {"security.protocol": "SSL"},
        told | login | {"sasl.password": "guessed"},
    ):
        with pytest.raises(KafkaException):
            AdminClient({**less, "log_level": 0}).list_topics(timeout=5)


def test_an_author_and_a_telescope_show_their_certificates(quiet: Stack) -> None:
    authors, subscribers = (
        f"tls://127.0.0.1:{quiet.port(name)}" for name in ("PUBLIC_VTP_AUTHORS", "PUBLIC_VTP_SUBSCRIBERS")
    )
    ca, shown = str(quiet.site.ca), str(quiet.site.add_client("lco"))
    sent = ("send", "--to", authors, "--samples", "2", "--first-sample", "90000", "--tls-ca", ca)
    quiet.nightwire(*sent, "--tls-cert", shown)
    quiet.nightwire("gateway", "ping", subscribers, "--tls-ca", ca, "--tls-cert", shown)
    refused(quiet.public, *sent, "--patience", "1")
