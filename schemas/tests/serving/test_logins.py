"""The header ``Authorization`` says who asks, or nothing."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.schemas.serving import Login, Token, login_of


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


def bearer(claims: Any) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"Bearer e30.{part}.c2ln"


def test_a_name_and_a_password_or_a_token() -> None:
    assert login_of(basic("ann:a:b")) == Login("ann", "a:b")
    said = bearer({"sub": "ann", "iss": "nightwire", "exp": 9.5})
    assert login_of(said) == Token(said.partition(" ")[2], "ann", "nightwire", 9.5)
    digests = {one.digest for one in (Login("a", "b"), Login("a", "c"), Token("b", "a", "", 0.0))}
    assert len(digests) == 3


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Basic",
        basic(":x"),
        basic("ann"),
        basic("a\0:x"),
        basic("a:\0"),
        "Bearer a.b",
        bearer([1]),
        bearer({"exp": {}}),
        bearer({"exp": 10**400}),
        "Digest x",
    ],
)
def test_what_says_nobody_is_nobody(said: str) -> None:
    assert login_of(said) is None


@given(st.one_of(st.text(), st.text().map(lambda text: f"Bearer {text}"), st.text().map(basic)))
def test_any_text_is_a_login_or_none(said: str) -> None:
    assert login_of(said) is None or isinstance(login_of(said), Login | Token)
