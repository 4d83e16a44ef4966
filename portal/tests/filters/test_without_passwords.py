"""Owners where Kafka asks nobody who he is, and where it does not answer."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest

from nightwire.core.kafka import admin, identity, principal, shown_token, speaker
from nightwire.core.presence import ask_directory
from nightwire.core.runtime import Endpoints
from nightwire.filters.cli.notify import flow_text
from nightwire.portal.filters import FilterActions, Owner
from nightwire.portal.filters.completion import completions, fields
from nightwire.schemas import sim_alert_schema
from nightwire.schemas.serving import KafkaAccess, Login, RefusedError, Token
from portal.tests.filters.conftest import sign_in
from portal.tests.sample import Served
from tests._serving import answering


def test_owners_say_their_name_and_are_told_that_nobody_verifies_it(served: Served) -> None:
    with httpx.Client(base_url=served.url, timeout=60, follow_redirects=True) as http:
        assert "owners are not verified" in http.get("/filters").text
        assert sign_in(http, "A name?", "").status_code == 400
        page = sign_in(http, "me", "")
        assert "No filters yet" in page.text
        assert "me, not verified" in page.text
        assert http.get("/api/filters").json() == []


def test_a_password_comes_by_tls_or_from_this_machine(served: Served) -> None:
    from starlette.requests import Request

    from nightwire.portal.authorization import Authorizer

    scope = {
        "type": "http",
        "headers": [],
        "session": {},
        "path": "/",
        "server": ("portal", 80),
        "query_string": b"",
    }
    far = Request({**scope, "scheme": "http", "client": ("192.0.2.1", 1)})
    authorizer = Authorizer(KafkaAccess({"sasl.username": "portal"}))
    with pytest.raises(RefusedError, match="unencrypted"):
        authorizer.require_encryption(far)
    authorizer.require_encryption(Request({**scope, "scheme": "https", "client": ("192.0.2.1", 1)}))
    authorizer.require_encryption(Request({**scope, "scheme": "http", "client": ("127.0.0.1", 1)}))
    Authorizer(authorizer.access, proxied=True).require_encryption(far)


def test_an_owner_tries_one_filter_at_a_time() -> None:
    actions = FilterActions(Endpoints("127.0.0.1:1"), KafkaAccess({}), "secret")
    with actions._trial_slot("ann"):
        with pytest.raises(RefusedError, match="a filter of yours"), actions._trial_slot("ann"):
            pass
        with actions._trial_slot("bob"):
            pass
    with actions._trial_slot("ann"):
        pass


def test_a_kafka_that_is_away_is_told() -> None:
    away = "127.0.0.1:1"
    with pytest.raises(RefusedError, match="does not answer") as told:
        Owner("ann", away, {}).ask(lambda: admin(away).list_topics(timeout=0.2))
    assert told.value.status == 503


def test_clients_enter_as_the_owner_and_never_as_the_portal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_SASL_USERNAME", "portal")
    access = KafkaAccess(
        {"sasl.username": "portal", "sasl.password": "x", "bootstrap.servers": "kafka:1"}, "kafka:2"
    )
    ann = Owner.of(Login("ann", "secret"), access, "kafka:1")
    assert (ann.bootstrap, ann.client["sasl.username"], ann.client["sasl.password"]) == (
        "kafka:1",
        "ann",
        "secret",
    )
    token = Owner.of(Token("a.b.c", "ann", "nightwire", 2.0**31), access, "kafka:1")
    assert (token.bootstrap, "sasl.password" in token.client) == ("kafka:2", False)
    assert token.ask(lambda: identity("kafka:2")["oauth_cb"]("")) == ("a.b.c", 2.0**31, "ann")
    as_in_a_trial = Owner(**json.loads(json.dumps(asdict(token))))
    assert as_in_a_trial.ask(lambda: identity("kafka:2")["oauth_cb"]("")) == ("a.b.c", 2.0**31, "ann")
    assert token.ask(principal, "kafka:2") == "ann"
    assert [token.ask(shown_token, "kafka:2"), ann.ask(shown_token, "kafka:1")] == ["a.b.c", ""]
    assert [ann.ask(speaker), speaker()] == ["ann", ""]
    assert principal("kafka:1") == "portal"
    assert Owner("ann", "kafka:1", {}).ask(identity, "kafka:1") == {}
    with pytest.raises(RefusedError, match="has ended"):
        Owner.of(Token("a.b.c", "ann", "nightwire", 1.0), access, "kafka:1")
    with pytest.raises(RefusedError, match="cannot tell owners apart"):
        Owner.of(Login("ann", ""), KafkaAccess({}), "kafka:1")  # its own name opens Kafka


def test_what_is_asked_apart_dies_with_who_asks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "says")
    waiting = f"import time\nout = open({str(tmp_path / 'says')!r}, 'wb', 0)\n"
    (tmp_path / "waiting.py").write_text(f"{waiting}out.write(b'w')\ntime.sleep(20)\nout.write(b'alive')\n")
    asks = "import runpy; from nightwire.portal.filters.child_process import call_in_child; "
    asks += f"call_in_child(runpy.run_path, {str(tmp_path / 'waiting.py')!r})"
    with subprocess.Popen([sys.executable, "-c", asks]) as parent, (tmp_path / "says").open("rb", 0) as says:
        assert says.read(1) == b"w"
        parent.kill()
        assert says.read() == b""


def test_a_directory_is_shown_the_owners_token() -> None:
    """By HTTP, to the process that writes flows for their owners."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            heard.append(self.headers["Authorization"])
            self.send_response(200)
            self.end_headers()

    with answering(Handler) as url:
        where = Endpoints("kafka:1", directory=url)
        owner = Owner("ann", "kafka:1", {"security.protocol": "SASL_PLAINTEXT"}, ("a.b.c", 2.0**31, "ann"))
        owner.ask(ask_directory, where, "PUT", "/flows/one")
    assert heard == ["Bearer a.b.c"]


def test_names_have_their_units() -> None:
    found = {one.name: one for one in completions(None, "sim")}
    assert found["magnitude"].unit == "mag"
    assert found["diaSource.ra"].unit == "deg"
    assert found["diaSource.ra"].says
    itself = {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}
    assert len([*fields(itself, (), {})]) == 1
    assert len(found) > len([*fields(sim_alert_schema(), (), {})])


def test_what_passes_is_mailed_by_a_flow() -> None:
    text = flow_text("f", "filter.ann.bright", "end", 'mailto:ann@example.org"\n[x]')
    import tomllib

    assert tomllib.loads(text)["stones"]["hook"] == {
        "from": "passed", "kind": "email", "to": 'ann@example.org"\n[x]'
    }  # fmt: skip
