"""Who may not come in, or knocks where nobody is, is told so, and by name."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from nightwire.consumers import AlertReader
from nightwire.core.kafka import enter
from nightwire.core.runtime import free_port
from tests._guarded_broker import Guarded, guarded_broker, keys_of, speaking_as

pytestmark = pytest.mark.kafka


SECRETS = {"ann": "ann's own password", "bob": "bob's own password"}


def added(guarded: Guarded, name: str) -> None:
    done = guarded.run("user", "add", name, "--quota", "0B", password=SECRETS[name])
    assert done.exit_code == 0, done.output


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with guarded_broker(tmp_path_factory.mktemp("guarded")) as one:
        added(one, "ann")
        yield one


def test_a_wrong_password_is_told_from_a_kafka_that_is_away(guarded: Guarded) -> None:
    with speaking_as(keys_of("ann", SECRETS["ann"])):
        assert enter(guarded.bootstrap) == guarded.bootstrap
    with speaking_as(keys_of("ann", "wrong")):
        for ask in (enter, lambda at: list(AlertReader("alerts.sim", bootstrap=at, follow=False))):
            with pytest.raises(KafkaException, match="does not let ann in") as caught:
                ask(guarded.bootstrap)
            assert caught.value.args[0].code() == KafkaError._AUTHENTICATION


def test_a_user_who_was_removed_is_told_so(guarded: Guarded) -> None:
    added(guarded, "bob")
    assert guarded.run("user", "remove", "bob").exit_code == 0
    with (
        speaking_as(keys_of("bob", SECRETS["bob"])),
        pytest.raises(KafkaException, match="does not let bob in"),
    ):
        enter(guarded.bootstrap)


@pytest.mark.parametrize("words", ["gateway serve", "filter run --light --registry http://127.0.0.1:9"])
def test_a_service_says_who_is_not_let_in_and_waits(guarded: Guarded, tmp_path: Path, words: str) -> None:
    command = [sys.executable, "-m", "nightwire.core.cli", *words.split(), "--state", str(tmp_path)]
    with speaking_as(keys_of("ann", "wrong"), KAFKA_BOOTSTRAP_SERVERS=guarded.bootstrap):
        service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert service.stderr is not None
    with service, service.stderr:
        assert any(f"{guarded.bootstrap} does not let ann in" in line for line in service.stderr)
        assert service.poll() is None
        service.terminate()


def test_an_address_where_nobody_answers_is_named(caplog: pytest.LogCaptureFixture) -> None:
    nowhere = f"127.0.0.1:{free_port()}"
    with pytest.raises(KafkaException, match=f"nobody answers at {nowhere} .*refused"):
        enter(nowhere)
    assert enter(nowhere, must_answer=False) == nowhere
    assert f"nobody answers at {nowhere}" in caplog.text
