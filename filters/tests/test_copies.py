"""Copies for one topic go out together, in their order, and no more is held than is said."""

from typing import Any

from nightwire.filters._copies import Copies


class Taken:
    """Takes records as `Writer` does, and keeps them."""

    def __init__(self) -> None:
        self.records: list[tuple[str, bytes | None, dict[str, Any]]] = []

    def write(self, topic: str, value: bytes | None, **said: Any) -> None:
        """Keep a record."""
        self.records.append((topic, value, said))


def test_copies_go_topic_by_topic_in_their_order() -> None:
    taken = Taken()
    copies = Copies(taken)  # type: ignore[arg-type]
    for value in (b"1", b"2"):
        for topic in ("a", "b"):
            copies.add(topic, value, key=b"k")
        copies.hold(1)
    assert taken.records == []
    copies.send()
    assert [(topic, value) for topic, value, _ in taken.records] == [
        ("a", b"1"), ("a", b"2"), ("b", b"1"), ("b", b"2"),
    ]  # fmt: skip
    assert all(said == {"key": b"k"} for *_, said in taken.records)
    copies.send()
    assert len(taken.records) == 4


def test_what_is_held_is_bounded() -> None:
    taken = Taken()
    copies = Copies(taken, gathered=25)  # type: ignore[arg-type]
    sent = []
    for number in range(5):
        copies.add("a", bytes([number]))
        copies.hold(10)
        sent.append(len(taken.records))
    assert sent == [0, 0, 3, 3, 3]
