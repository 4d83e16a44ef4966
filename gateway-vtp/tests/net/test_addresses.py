"""Addresses as options and tables write them."""

from typing import Any

import pytest

from nightwire.gateway.net.addresses import Address, read_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("a.b:1", ("a.b", 1)),
        ("a.b", ("a.b", 8099)),
        ("[::1]:7", ("::1", 7)),
        ("[::1]", ("::1", 8099)),
        ("tls://a.b", ("a.b", 8099, True)),
        ("tls://[::1]:7", ("::1", 7, True)),
    ],
)
def test_addresses(text: str, address: Any) -> None:
    found = read_address(text, 8099)
    assert found == Address(*address)
    assert read_address(str(found), 1) == found


NONE = ("", ":1", "a:b", "a:99999", "tls://", "tls://:1", "a..b", "\udcff", "a" * 64)


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="no HOST:PORT"):
        read_address(text, 8099)
