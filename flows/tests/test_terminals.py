"""Terminals outside Kafka: what they send, and to whom they do not."""

import json
import sqlite3
import ssl
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from standardwebhooks import Webhook as StandardWebhook

from flows.tests.receivers import Dripping, Tom, receiver, serving
from flows.tests.running import alert
from nightwire.core.outside import http, pin_url
from nightwire.core.runtime import free_port
from nightwire.core.tls.authority import new_authority, server_identity
from nightwire.flows.model import Stone
from nightwire.flows.terminals import (
    EventView,
    Refused,
    TerminalLimits,
    Unavailable,
    mail,
    open_terminal,
    vtp,
)
from nightwire.flows.terminals.mail import MOST_IN_AN_HOUR, Quota
from nightwire.schemas import AlertDecoder, SchemaRegistry

EVENT = EventView.decode(alert(7, band="g"), "alerts.sim/0/7", "bright", AlertDecoder(SchemaRegistry(None)))
INSIDE = TerminalLimits(allow_private=True)
SECRET = "whsec_bmlnaHR3aXJlIG5pZ2h0d2lyZSE="  # noqa: S105


def stone(kind: str, **options: Any) -> Stone:
    """Return a terminal."""
    return Stone("out", kind, (), options=options)


def deliver(to: Stone, limits: TerminalLimits, event: EventView = EVENT) -> None:
    """Hand one event over."""
    with closing(open_terminal(to, limits)) as terminal:
        terminal.deliver(event)


def test_a_webhook_gets_a_signed_event_with_its_key() -> None:
    with receiver() as server:
        deliver(stone("webhook", url=server.url, secret=SECRET), INSIDE)
    [(headers, body)] = server.got
    StandardWebhook(SECRET).verify(body, headers)
    assert headers["idempotency-key"] == "alerts.sim/0/7"
    assert headers["host"] == server.url.split("/")[2]
    assert json.loads(body)["event"]["diaSource"]["band"] == "g"


@pytest.mark.parametrize(
    ("status", "error"),
    [(500, Unavailable), (503, Unavailable), (429, Unavailable), (404, Refused), (302, Refused)],
)
def test_answers_that_are_no_yes(status: int, error: type[Exception]) -> None:
    with receiver() as server:
        server.status, server.location = status, server.url if status == 302 else ""
        with pytest.raises(error, match=f"answers {status}"):
            deliver(stone("webhook", url=server.url), INSIDE)
    assert server.refused == 1  # the redirect to itself was not followed


def test_nobody_there_is_asked_again() -> None:
    with receiver() as server:
        url = server.url
    with pytest.raises(Unavailable, match="no answer"):
        deliver(stone("webhook", url=url), INSIDE)


def test_an_answer_byte_by_byte_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "TIMEOUT", 0.5)
    with receiver() as server:
        server.pace = 0.2
        with pytest.raises(Unavailable, match=r"no answer within 0\.5 s"):
            deliver(stone("webhook", url=server.url), INSIDE)


def test_a_mail_server_or_broker_byte_by_byte_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time."""
    monkeypatch.setattr(mail, "DEADLINE", 0.5)
    monkeypatch.setattr(vtp, "TIMEOUT", 0.5)
    event = EventView.decode(alert(7, ra=1.0, dec=2.0), "a/0/7", "b", AlertDecoder(SchemaRegistry(None)))
    mailed = stone("email", to="ann@example.org")
    with serving(Dripping(b"220-")) as server:
        monkeypatch.setenv("NIGHTWIRE_FLOW_SMTP", f"127.0.0.1:{server.server_address[1]}")
        with pytest.raises(Unavailable, match="closed"):
            deliver(mailed, INSIDE)
    with serving(Dripping(b"\0\0\x10\0")) as server:
        sent = stone("vtp", to=f"127.0.0.1:{server.server_address[1]}", survey="sim")
        with pytest.raises(Unavailable, match=r"timed out|no whole answer"):
            deliver(sent, INSIDE, event)


def test_a_vtp_broker_inside_is_refused() -> None:
    with pytest.raises(Refused, match="an address inside"):
        deliver(stone("vtp", to="localhost:9"), TerminalLimits())


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/",
        "http://localhost/",
        "http://[::1]/",
        "http://[::ffff:10.0.0.1]/",
        "http://10.1.2.3/",
        "http://192.168.1.1/",
        "http://169.254.169.254/latest/meta-data",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://224.0.0.1/",
        "http://0.0.0.0/",
        "http://[64:ff9b::a9fe:a9fe]/",
        "http://[::7f00:1]/",
        "http://[::ffff:0:7f00:1]/",
        "http://[fec0::1]/",
    ],
)
def test_addresses_inside_are_refused(url: str) -> None:
    with pytest.raises(Refused, match="an address inside"):
        pin_url(url, allow_private=False)


@pytest.mark.parametrize(
    "url", ["ftp://example.org/", "file:///etc/passwd", "http://", "http://a:b@c/", "http://a\nb/"]
)
def test_what_is_no_webhook_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        pin_url(url, allow_private=True)


def test_an_address_outside_is_connected_to_as_it_was_judged() -> None:
    request = pin_url("https://8.8.8.8:8443/x?y=1", allow_private=False).request(b"", {})
    assert (request.url.host, request.headers["host"]) == ("8.8.8.8", "8.8.8.8:8443")


def test_slack_gets_a_text() -> None:
    with receiver() as server:
        text = "object ${diaSource.diaObjectId} in ${diaSource.band}, ${nothing}"
        deliver(stone("slack", url=server.url, text=text), INSIDE)
    assert json.loads(server.got[0][1]) == {"text": "object 8 in g, ${nothing}"}


def test_secrets_are_variables_for_flows_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", "swordfish")
    with receiver() as server:
        monkeypatch.setenv("NIGHTWIRE_FLOW_HOOK", server.url)
        deliver(stone("webhook", url="env:NIGHTWIRE_FLOW_HOOK"), INSIDE)
        with pytest.raises(Unavailable, match="begins with NIGHTWIRE_FLOW_"):
            deliver(stone("webhook", url="env:KAFKA_SASL_PASSWORD"), INSIDE)
    assert len(server.got) == 1


class Letters:
    """Takes mail, or refuses it with *answer*."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.answer = "250 OK"

    async def handle_RCPT(  # noqa: N802
        self, _server: object, _session: object, envelope: Any, address: str, _options: object
    ) -> str:
        """Take an address; nobody is no address."""
        if address.startswith("nobody"):
            return "550 nobody of that name"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server: object, _session: object, envelope: Any) -> str:  # noqa: N802
        """Take a message."""
        self.got.append(envelope.content.decode())
        return self.answer


def test_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = Letters()
    server = Controller(letters, hostname="127.0.0.1", port=free_port())
    server.start()
    try:
        monkeypatch.setenv("NIGHTWIRE_FLOW_SMTP", f"127.0.0.1:{server.port}")
        mail = open_terminal(stone("email", to="ann@example.org", subject="${diaSource.band}"), INSIDE)
        mail.deliver(EVENT)
        mail.deliver(EVENT)
        letters.answer = "451 later"
        with pytest.raises(Unavailable, match="451"):
            mail.deliver(EVENT)
        letters.answer = "550 never"
        with pytest.raises(Refused, match="550"):
            mail.deliver(EVENT)
        with pytest.raises(Refused, match="nobody of that name"):
            deliver(stone("email", to="nobody@example.org"), INSIDE)
        with monkeypatch.context() as away:  # what no server saw, counts for nobody
            away.setattr("nightwire.flows.terminals.mail.QUOTA", Quota(lambda: 0.0))
            away.setenv("NIGHTWIRE_FLOW_SMTP", f"127.0.0.1:{free_port()}")
            his = open_terminal(stone("email", to="ann@example.org", owner="ann"), INSIDE)
            for _ in range(MOST_IN_AN_HOUR + 1):
                with pytest.raises(Unavailable, match="refused"):
                    his.deliver(EVENT)
        letters.answer = "250 OK"
        two = open_terminal(stone("email", to=["ann@example.org", "nobody@example.org"]), INSIDE)
        taken = len(letters.got)
        for _ in range(2):
            with pytest.raises(Refused, match="nobody"):
                two.deliver(EVENT)  # one has it; the other is told, and the first is not mailed again
        assert len(letters.got) == taken + 1
    finally:
        server.stop()
    assert "Subject: g" in letters.got[0]
    ids = {line for one in letters.got for line in one.splitlines() if line.startswith("Message-ID")}
    assert len(ids) == 1


def test_an_owner_sends_so_many_messages_an_hour() -> None:
    now = [0.0]
    quota = Quota(lambda: now[0])
    for _ in range(MOST_IN_AN_HOUR):
        quota.take("ann")
        quota.take("")
    quota.take("bob", MOST_IN_AN_HOUR - 1)
    with pytest.raises(Unavailable, match="the flows of bob"):
        quota.take("bob", 2)  # one mail to two
    with pytest.raises(Unavailable, match="the flows of ann have sent 100 messages within an hour"):
        quota.take("ann")
    quota.take("bob")
    quota.take("")
    now[0] = 3600.0
    quota.take("ann")


def test_mail_goes_to_a_server_whose_certificate_is_good(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority, letters, file = new_authority("test"), Letters(), tmp_path / "server.pem"
    identity = server_identity(authority, ["127.0.0.1"])
    file.write_bytes(identity.private_pem() + identity.public_pem())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    server = Controller(letters, hostname="127.0.0.1", port=free_port(), tls_context=context)
    server.start()
    try:
        monkeypatch.setenv("NIGHTWIRE_FLOW_SMTP", f"127.0.0.1:{server.port}")
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            deliver(stone("email", to="ann@example.org"), INSIDE)
        (tmp_path / "ca.pem").write_bytes(authority.public_pem())
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        deliver(stone("email", to="ann@example.org"), INSIDE)
    finally:
        server.stop()
    assert len(letters.got) == 1


REQUEST = {
    "token": "env:NIGHTWIRE_FLOW_TOM",
    "facility": "FakeRoboticFacility",
    "observation_type": "OBSERVATION",
    "parameters": {"test_input": "band ${diaSource.band}", "exposures": [1, 2], "start": date(2026, 11, 25)},
    "survey": "sim",
}


@pytest.fixture
def tom(monkeypatch: pytest.MonkeyPatch) -> Iterator[Tom]:
    """Yield a TOM like one of TOM Toolkit 3.1, by which the same requests were taken."""
    monkeypatch.setenv("NIGHTWIRE_FLOW_TOM", "swordfish")
    with serving(Tom()) as server:
        yield server


PLACED = EventView.decode(
    alert(7, band="g", ra=10.0, dec=-20.0), "alerts.sim/0/7", "bright", AlertDecoder(SchemaRegistry(None))
)


def ask(tom: Tom) -> None:
    """Ask a TOM to observe the object of one event."""
    deliver(stone("tom", url=f"http://127.0.0.1:{tom.server_port}/", **REQUEST), INSIDE, PLACED)


def test_a_tom_is_asked_once_to_observe_an_object(tom: Tom) -> None:
    ask(tom)
    ask(tom)
    [observation] = tom.observations
    given = {"test_input": "band g", "exposures": [1, 2], "start": "2026-11-25"}
    assert observation["observing_parameters"] == given
    assert observation["name"] == "alerts.sim/0/7"


def test_a_target_is_found_behind_others_whose_names_contain_its_own(tom: Tom) -> None:
    tom.targets = [{"name": f"sim 8{more}", "id": id_} for id_, more in enumerate(("0", "1", "2", "3", ""))]
    ask(tom)
    assert [one["target_id"] for one in tom.observations] == [4]


def test_a_target_that_another_terminal_makes_meanwhile_is_taken(tom: Tom) -> None:
    ask(tom)
    tom.observations, tom.late = [], 1
    ask(tom)
    assert [one["target_id"] for one in tom.observations] == [1]
    tom.late = 2  # nor seen after: it is another user's
    with pytest.raises(Refused, match="already exists"):
        ask(tom)


def test_a_tom_has_time_to_ask_its_facility(tom: Tom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "TIMEOUT", 0.1)
    tom.pace = 0.3
    ask(tom)
    assert len(tom.observations) == 1


def test_events_wait_while_a_tom_or_its_facility_refuses_a_password(
    tom: Tom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NIGHTWIRE_FLOW_TOM", "expired")
    with pytest.raises(Unavailable, match="answers 401"):
        ask(tom)
    monkeypatch.setenv("NIGHTWIRE_FLOW_TOM", "swordfish")
    tom.location = "/"
    with pytest.raises(Unavailable, match="answers 302"):
        ask(tom)
    assert not tom.observations


def test_a_mail_says_its_fields_in_lines_and_a_subject_is_one() -> None:
    from nightwire.flows.terminals.mail import Mail

    made = Mail(["ann@example.org"], "a\r\nBcc: eve@example.org").message(EVENT)
    assert isinstance(made, EmailMessage)
    assert made["Bcc"] is None
    lines = made.get_content().splitlines()
    assert {"diaSource.band: g", "diaSourceId: 7"} <= {*lines}
    assert lines[-1].startswith("Sent by the flow bright")


def test_a_file_gets_lines_where_the_worker_allows_files(tmp_path: Path) -> None:
    limits = TerminalLimits(files=tmp_path / "out")
    open_terminal(stone("file", path="bright/a.jsonl"), limits).deliver(EVENT)
    [line] = (tmp_path / "out/bright/a.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == EVENT.identity
    with (tmp_path / "out/bright/a.jsonl").open("ab") as file:
        file.write(b'{"id":"torn')
    open_terminal(stone("file", path="bright/a.jsonl"), limits).deliver(EVENT)
    assert (tmp_path / "out/bright/a.jsonl").read_text().splitlines() == [line, '{"id":"torn', line]
    with pytest.raises(Refused, match="leads out"):
        open_terminal(stone("file", path="../a"), limits).deliver(EVENT)
    with pytest.raises(Unavailable, match='--files FOLDER, and let at = "NAME"'):
        deliver(stone("file", path="a"), TerminalLimits())


def test_a_database_has_each_event_once(tmp_path: Path) -> None:
    given = {"database": f"sqlite:///{tmp_path}/a.db", "table": "bright"}
    rows = open_terminal(stone("database", **given), TerminalLimits(files=tmp_path))
    rows.deliver(EVENT)
    rows.deliver(EVENT)
    rows.close()
    [(key, flow, event)] = sqlite3.connect(tmp_path / "a.db").execute("SELECT * FROM bright").fetchall()
    assert (key, flow) == (EVENT.identity, "bright")
    assert json.loads(event)["diaSource"]["band"] == "g"


@pytest.mark.parametrize(
    ("url", "error"),
    [("nosuch://x", Refused), ("no url", Refused), ("sqlite:////proc/no/a", Unavailable)],
)
def test_databases_that_cannot_be(url: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        deliver(stone("database", database=url, table="t"), TerminalLimits(files=Path("/proc")))


def test_slack_gets_fields_as_texts_that_call_nobody() -> None:
    shouted = EventView("a/0/1", "bright", {"name": "<!channel> & <http://evil|x>"})
    with receiver() as server:
        deliver(stone("slack", url=server.url, text="<b> ${name}"), INSIDE, shouted)
    assert json.loads(server.got[0][1]) == {"text": "<b> &lt;!channel&gt; &amp; &lt;http://evil|x&gt;"}


@pytest.mark.parametrize("url", ["https://ann:swordfish@x/", "swordfish", "http://swordfish\x01/"])
def test_what_a_variable_holds_is_told_to_nobody(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("NIGHTWIRE_FLOW_HOOK", url)
    with pytest.raises(Refused) as refused:
        deliver(stone("webhook", url="env:NIGHTWIRE_FLOW_HOOK"), INSIDE)
    assert "swordfish" not in str(refused.value)


def test_a_database_in_a_file_lies_where_the_worker_allows_files(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with pytest.raises(Refused, match="leads out"):
        deliver(stone("database", database=url, table="t"), TerminalLimits(files=tmp_path / "b"))
    with pytest.raises(Unavailable, match="--files"):
        deliver(stone("database", database=url, table="t"), INSIDE)
    assert not [*tmp_path.glob("a*")]


def test_a_row_that_a_table_refuses_is_no_row_that_is_there(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as made:
        made.execute("CREATE TABLE t (id TEXT, flow TEXT, event TEXT, night TEXT NOT NULL)")
    rows = open_terminal(
        stone("database", database=f"sqlite:///{tmp_path}/a.db", table="t"), TerminalLimits(files=tmp_path)
    )
    with pytest.raises(Refused, match="the table does not take it"):
        rows.deliver(EVENT)
    rows.close()


def test_two_flows_share_a_table(tmp_path: Path) -> None:
    rows = open_terminal(
        stone("database", database=f"sqlite:///{tmp_path}/a.db", table="t"), TerminalLimits(files=tmp_path)
    )
    rows.deliver(EVENT)
    rows.deliver(EventView(EVENT.identity, "faint", EVENT.fields))
    rows.close()
    found = sqlite3.connect(tmp_path / "a.db").execute("SELECT flow FROM t ORDER BY flow").fetchall()
    assert found == [("bright",), ("faint",)]
