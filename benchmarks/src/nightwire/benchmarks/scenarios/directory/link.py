"""A link of 100 Mbit/s: to a host of a LAN of namespaces, by a cable that `tc` shapes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from subprocess import CalledProcessError

from nightwire.benchmarks.environment.lan import Lan, lan, run

RATE = 100e6
"""Of the link. [bit/s]"""


class LinkError(Exception):
    """There can be no such link here; the message says why."""


@contextmanager
def slow_link() -> Iterator[Lan]:
    """Yield a LAN of one host; what we send there is shaped.

    Raises:
        LinkError: We are not root, or the kernel has no ``tbf``.
    """
    shape = ("rate", f"{RATE:.0f}bit", "burst", "64kb", "latency", "50ms")
    with ExitStack() as exits:
        try:
            one = exits.enter_context(lan(1))
            run("tc", "qdisc", "add", "dev", one.cable(0), "root", "tbf", *shape)
        except FileNotFoundError as error:
            raise LinkError(f"there is no `{error.filename}`") from error
        except CalledProcessError as error:
            raise LinkError(f"`{' '.join(error.cmd)}`: {error.stderr.strip()}") from error
        yield one


def why_not() -> str:
    """Return why there can be no such link here; empty where there can."""
    try:
        with slow_link():
            return ""
    except LinkError as error:
        return str(error)
