"""What the verbs say to wrong use, and to a broker that is not there."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from nightwire.core.cli import main
from nightwire.core.stack import free_port
from nightwire.core.tls.site import Site
from nightwire.gateway.cli.gateway import gateway
from nightwire.gateway.cli.send import send


def serve(*options: str) -> Result:
    return CliRunner().invoke(gateway, ["serve", "--bootstrap", "127.0.0.1:1", *options])


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--feed", "alerts.sim"), "only a filter's topic"),
        (("--feed", "filter.Me.x"), "'Me' is no name"),
        (("--feed", "filter.me.x"), "needs the schema registry"),
        (("--author-allow", "here"), "'here'"),
        (("--remote", "a:b"), "no HOST:PORT"),
        (("--authors", "127.0.0.1:123456"), "no HOST:PORT"),
    ],
)
def test_options_that_make_no_sense_are_wrong_use(
    options: tuple[str, str], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NIGHTWIRE_SCHEMA_REGISTRY", raising=False)
    done = serve(*options)
    assert done.exit_code == 2
    assert complaint in done.output


def test_send_names_the_files_that_are_not_there(tmp_path: Path) -> None:
    done = CliRunner().invoke(send, ["--to", "127.0.0.1:1", str(tmp_path / "no.xml")])
    assert done.exit_code == 2
    assert "no.xml" in done.output
    assert CliRunner().invoke(send, ["--to", "127.0.0.1:1"]).exit_code == 2


def test_who_asks_for_tls_is_not_sent_out_without(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.init()
    for verb, words in ((send, ["--samples", "1", "--to"]), (gateway, ["ping"]), (gateway, ["test", "--to"])):
        done = CliRunner().invoke(verb, [*words, "127.0.0.1:1", "--tls-ca", str(site.ca)])
        assert done.exit_code == 2
        assert "name tls://127.0.0.1:1" in done.output


def test_send_says_when_there_is_no_broker() -> None:
    to = f"127.0.0.1:{free_port()}"
    done = CliRunner().invoke(send, ["--to", to, "--samples", "2", "--patience", "0", "--json"])
    report = json.loads(done.output)
    assert done.exit_code == 1
    assert (report["sent"], report["failed"]) == (2, 2)
    assert to in report["results"][0]["reason"]


def test_ping_says_when_there_is_no_broker() -> None:
    done = CliRunner().invoke(main, ["gateway", "ping", f"127.0.0.1:{free_port()}"])
    assert done.exit_code == 1
    assert "refused" in done.output
