"""Another machine on this one: a network namespace, which reaches us by one address alone."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

FIRST = ip_address("198.18.0.0") + 4 * (os.getpid() % (1 << 15))
SERVER, LAPTOP = str(FIRST + 1), str(FIRST + 2)
"""Addresses of the two, from a network that is for tests; another run has others."""


@dataclass(frozen=True)
class Laptop:
    """Somebody's machine.

    Attributes:
        name: Of the namespace.
        home: A folder that nightwire has never seen.
        children: What was started there.
    """

    name: str
    home: Path
    children: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *command: str, **given: str) -> subprocess.Popen[str]:
        """Start *command* there, with nothing in its environment but what is *given*."""
        entered = ["ip", "netns", "exec", self.name, *command]
        bare = {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "XDG_CACHE_HOME": str(self.home / "cache"),
        }
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            entered, cwd=self.home, env=bare | given, stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )
        self.children.append(child)
        return child

    def switch_off(self) -> None:
        """End what still runs there."""
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.communicate()

    def nightwire(self, keys: Mapping[str, str], *words: str) -> subprocess.Popen[str]:
        """Start a verb there."""
        return self.start(sys.executable, "-m", "nightwire.core.cli", *words, **keys)

    def run(self, keys: Mapping[str, str], *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a verb there."""
        child = self.nightwire(keys, *words)
        out, err = child.communicate(stdin, timeout=200)
        return subprocess.CompletedProcess(words, child.returncode, out, err)

    def python(self, program: str, *arguments: str, **given: str) -> str:
        """Run a program of Python's there; return what it prints."""
        child = self.start(sys.executable, "-c", program, *arguments, **given)
        out, err = child.communicate(timeout=200)
        assert child.returncode == 0, err
        return out


@contextmanager
def laptop(home: Path) -> Iterator[Laptop]:
    """Yield one that is connected to us by a cable: it is `LAPTOP`, and we are `SERVER`."""
    name, cable = f"laptop-{os.getpid()}", f"nw{os.getpid()}"
    one = Laptop(name, home)
    _ip("netns", "add", name)
    try:
        _ip("link", "add", cable, "type", "veth", "peer", "name", "cable", "netns", name)
        _ip("address", "add", f"{SERVER}/30", "dev", cable)
        _ip("link", "set", cable, "up")
        _ip("-n", name, "address", "add", f"{LAPTOP}/30", "dev", "cable")
        for device in ("cable", "lo"):
            _ip("-n", name, "link", "set", device, "up")
        yield one
    finally:
        one.switch_off()
        _ip("netns", "delete", name)  # and the cable, once nobody is there


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
