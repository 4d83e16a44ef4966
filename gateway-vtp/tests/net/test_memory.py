"""The memory that messages of peers may take, over all connections."""

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from nightwire.gateway.net.memory import MemoryBudget, Sender


def senders(hosts: list[str]) -> tuple[list[Sender], list[int]]:
    """Return a sender at each host, and the numbers of those that are given up."""
    gone = list[int]()

    def give_up(number: int) -> Callable[[Exception], None]:
        return lambda _error: gone.append(number)

    return [Sender(host, give_up(number)) for number, host in enumerate(hosts)], gone


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 100)), max_size=60))
def test_incomplete_frames_never_take_more_than_the_limit(steps: list[tuple[int, int]]) -> None:
    memory, held = MemoryBudget(limit=150), dict.fromkeys(range(6), 0)
    peers, gone = senders(["192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "::1", "::2"])
    for number, grown in steps:
        held[number] = min(held[number] + grown, 100)
        memory.hold_incomplete(peers[number], held[number])
        while gone:
            held[gone.pop()] = 0
        assert memory.held == sum(held.values()) <= 150


def test_whoever_holds_most_goes_whoever_grows() -> None:
    """Peers that stay below an average could each come near the largest, and be thousands."""
    memory = MemoryBudget(limit=100)
    (large, small, third), gone = senders(["192.0.2.1"] * 3)
    for peer, size in ((large, 60), (small, 35), (third, 6)):
        memory.hold_incomplete(peer, size)
    assert (gone, memory.held) == ([0], 41)


def test_many_at_one_address_go_before_a_large_one_at_another() -> None:
    memory = MemoryBudget(limit=100)
    (good, *bad), gone = senders(["192.0.2.1"] + ["192.0.2.2"] * 10)
    memory.hold_incomplete(good, 40)
    for peer in bad:
        memory.hold_incomplete(peer, 10)
    assert (len(gone), 0 in gone, memory.held) == (4, False, 100)


def test_events_wait_where_others_fill_the_memory_and_one_that_is_larger_goes_alone() -> None:
    memory, seen = MemoryBudget(limit=10), list[str]()

    def come(name: str, size: int) -> None:
        if memory.has_room(size):
            memory.reserve(size)
            seen.append(name)
        else:
            memory.when_room(size, wakes[name])

    sizes = {"a": 6, "b": 4, "c": 50, "d": 1}
    wakes = {name: partial(come, name, size) for name, size in sizes.items()}
    for wake in wakes.values():
        wake()
    assert (seen, memory.held) == (["a", "b"], 10)
    memory.release(6)
    assert seen == ["a", "b"]  # c is first in line, and waits until all are gone
    memory.release(4)
    assert (seen, memory.held) == (["a", "b", "c"], 50)
    memory.release(50)
    assert (seen, memory.held) == (["a", "b", "c", "d"], 1)
