"""Codes of invitations, and wrong tries."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightwire.core.logins.invitations import Invitation, InvitationError
from nightwire.schemas.serving import TRIES, WINDOW, RefusedError, Tries, source_of


def test_a_code_is_read_as_it_was_made_until_it_ends() -> None:
    made = Invitation.fresh("ann", 60)
    assert Invitation.read(f" {made.code}\n") == made
    assert made.principal == "nightwire.invited.ann"
    assert Invitation.fresh("ann", 60).code != made.code
    with pytest.raises(InvitationError, match="the invitation of ann has ended"):
        Invitation.read(Invitation.fresh("ann", -1).code)


@given(st.one_of(st.text(), st.from_regex(r"ann\.[0-9]*\.?.*")))
def test_any_text_is_an_invitation_or_refused(text: str) -> None:
    try:
        found = Invitation.read(text)
    except InvitationError:
        return
    assert found.code.partition(".")[2].partition(".")[2] == found.secret
    assert found.expires > time.time() - 1


def test_who_is_wrong_too_often_waits_and_nobody_else_does() -> None:
    now = [0.0]
    tries = Tries(lambda: now[0])
    for _ in range(TRIES):
        tries.check("mallory")
        tries.wrong("mallory")
    with pytest.raises(RefusedError) as refused:
        tries.check("mallory")
    assert refused.value.status == 429
    tries.check("ann")
    now[0] += WINDOW
    tries.check("mallory")


@pytest.mark.parametrize(
    ("address", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_a_network_of_ipv6_addresses_is_one_source(address: str, other: str, same: bool) -> None:
    assert (source_of(address) == source_of(other)) == same
    tries = Tries()
    for _ in range(TRIES):
        tries.wrong(address)
    if same:
        with pytest.raises(RefusedError):
            tries.check(other)
    else:
        tries.check(other)
