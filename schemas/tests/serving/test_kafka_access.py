"""What Kafka said of a user holds for a while, and no longer than a token."""

import time

import pytest
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]

from nightwire.schemas.serving import KafkaAccess, NotLetInError, Token

READ, TOPIC = AclOperation.READ, "alerts.sim"


def test_an_answer_about_a_token_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    access = KafkaAccess({"sasl.username": "portal", "sasl.password": "secret"})
    monkeypatch.setattr(access, "_asked_as", lambda *_asked: {TOPIC: True})
    token = Token("a.b.c", "ann", "nightwire", time.time() + 60)
    assert access.held(token, READ, [TOPIC]) is None
    assert access.allowed(token, READ, [TOPIC]) == {TOPIC}
    assert access.held(token, READ, [TOPIC]) == {TOPIC}
    monkeypatch.setattr(time, "time", lambda: token.expires)
    assert access.held(token, READ, [TOPIC]) is None
    with pytest.raises(NotLetInError, match="has ended"):
        access.allowed(token, READ, [TOPIC])
