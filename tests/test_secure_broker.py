"""The broker that asks who is there lets the right ones in, and nobody else."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests._secure_broker import SecureBroker, environment, secure_broker

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """Yield a broker that asks who is there."""
    with secure_broker(tmp_path_factory.mktemp("secure")) as one:
        yield one


@pytest.mark.parametrize("listener", ["scram", "oauth", "tls"])
def test_who_knows_the_secret_comes_in_and_others_do_not(secure: SecureBroker, listener: str) -> None:
    address = {"bootstrap.servers": getattr(secure, listener)}
    client = getattr(secure, f"{listener}_client")
    assert AdminClient(address | client).list_topics(timeout=60).brokers
    secret = next(name for name in client if name.endswith(("password", "secret")))
    quiet = {"log_level": 0, "error_cb": lambda _error: None}
    stranger = AdminClient(address | client | {secret: "wrong"} | quiet)
    with pytest.raises(KafkaException):
        stranger.list_topics(timeout=2)


def test_properties_become_variables_by_the_rule_of_all() -> None:
    assert environment({"sasl.username": "me"}, "X_") == {"X_SASL_USERNAME": "me"}
