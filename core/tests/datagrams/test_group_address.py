"""Addresses of groups, and sockets that hear one another."""

import select

import pytest

from nightwire.core.datagrams import GroupAddressError, open_receiver, open_sender, parse_group, parse_groups


def test_a_group_is_read() -> None:
    found = parse_group("10.0.0.1@239.1.2.3:5400", "127.0.0.1")
    assert (found.source, found.group, found.port, found.name) == (
        "10.0.0.1",
        "239.1.2.3",
        5400,
        "239.1.2.3:5400",
    )


@pytest.mark.parametrize("text", ["", "239.1.2.3", "10.0.0.1:5400", "239.1.2.3:0", "x@239.1.2.3:1", "a:b"])
def test_what_is_no_group_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(GroupAddressError, match=r"239\.10\.0\.1:5400"):
        parse_group(text)


def test_an_interface_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(GroupAddressError, match=r"no interface 'nowhere0'.*lo"):
        parse_group("239.1.2.3:5400", "nowhere0")


@pytest.mark.parametrize(("source", "is_heard"), [("", True), ("127.0.0.1@", True), ("127.0.0.9@", False)])
def test_a_receiver_hears_its_group_and_its_source(source: str, is_heard: bool) -> None:
    address = parse_group(f"{source}239.255.18.1:45017", "127.0.0.1")
    other = parse_group("239.255.18.2:45017", "127.0.0.1")
    with open_receiver(address) as receiver, open_sender(other) as wrong, open_sender(address) as right:
        wrong.send(b"wrong")
        right.send(b"right")
        assert bool(select.select([receiver], [], [], 0.5)[0]) == is_heard
        if is_heard:
            assert receiver.recv(99) == b"right"


def test_a_range_of_groups_is_told_one_by_one() -> None:
    assert parse_groups("239.10.0.0/30:5400") == ["239.10.0.1:5400", "239.10.0.2:5400"]
    for wrong in ("10.0.0.0/24:5400", "239.0.0.0/8:5400", "239.10.0.0/24", "239.10.0.0/24:0", "x"):
        with pytest.raises(GroupAddressError):
            parse_groups(wrong)
