"""A link of 100 Mbit/s: a network namespace at the other end of a cable that `tc` shapes."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import ip_address

RATE = 100e6
"""Of the link. [bit/s]"""
FIRST = ip_address("198.18.128.0") + 4 * (os.getpid() % (1 << 13))
HERE, THERE = str(FIRST + 1), str(FIRST + 2)
"""The two ends, of a network that is for benchmarks (RFC 2544)."""


@contextmanager
def slow_link() -> Iterator[Sequence[str]]:
    """Yield the words that run a command at its far end; what we send there is shaped.

    Raises:
        LinkError: We are not root, or the kernel has no ``tbf``.
    """
    name, cable = f"bench-{os.getpid()}", f"bn{os.getpid()}"
    _run("ip", "netns", "add", name)
    try:
        _run("ip", "link", "add", cable, "type", "veth", "peer", "name", "cable", "netns", name)
        _run("ip", "address", "add", f"{HERE}/30", "dev", cable)
        _run("ip", "link", "set", cable, "up")
        _run("ip", "-n", name, "address", "add", f"{THERE}/30", "dev", "cable")
        _run("ip", "-n", name, "link", "set", "cable", "up")
        shape = ("rate", f"{RATE:.0f}bit", "burst", "64kb", "latency", "50ms")
        _run("tc", "qdisc", "add", "dev", cable, "root", "tbf", *shape)
        yield "ip", "netns", "exec", name
    finally:
        _run("ip", "netns", "delete", name)  # and the cable


class LinkError(Exception):
    """There can be no such link here; the message says why."""


def why_not() -> str:
    """Return why there can be no such link here; empty where there can."""
    try:
        with slow_link():
            return ""
    except LinkError as error:
        return str(error)


def _run(*words: str) -> None:
    try:
        subprocess.run(words, check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise LinkError(f"there is no `{words[0]}`") from error
    except subprocess.CalledProcessError as error:
        raise LinkError(f"`{' '.join(words)}`: {error.stderr.strip()}") from error
