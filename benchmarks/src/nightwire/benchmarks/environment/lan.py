"""A LAN on this machine: namespaces on a bridge with IGMP snooping, which can lose and be cut.

The kernel here need not have netem: what is lost is dropped by iptables where it arrives.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("ip", "iptables")
DEVICE = "lan"
"""The interface of each host."""
SNOOPING = ("mcast_snooping", "1", "mcast_query_use_ifaddr", "1", "mcast_query_response_interval", "50")
"""A bridge floods until it has asked who listens, and waited for answers: here half a second."""
STATISTICS = Path("/sys/class/net")


def is_possible() -> bool:
    """Return whether this machine makes such LANs: for root, with iproute2 and iptables."""
    return os.geteuid() == 0 and all(map(shutil.which, TOOLS))


@dataclass(frozen=True)
class Lan:
    """A bridge, to which we belong, and hosts on it.

    Attributes:
        bridge: Name of the bridge.
        address: Our address on it.
        hosts: Names of the hosts' namespaces.
    """

    bridge: str
    address: str
    hosts: Sequence[str]

    def on(self, host: int, command: Sequence[str]) -> list[str]:
        """Return the command line that runs *command* on a host."""
        return ["ip", "netns", "exec", self.hosts[host], *command]

    def lose(self, host: int, share: float, group: str) -> None:
        """Let a host lose a *share* of what comes to *group* (an address); 1 cuts it off."""
        run(*self.on(host, ["iptables", "-F", "INPUT"]))
        luck = [] if share >= 1 else ["-m", "statistic", "--mode", "random", "--probability", str(share)]
        if share > 0:
            run(*self.on(host, ["iptables", "-A", "INPUT", "-d", group, *luck, "-j", "DROP"]))

    def cable(self, host: int) -> str:
        """Return the bridge's end of the cable to a host."""
        return f"{self.bridge}v{host}"

    @property
    def sent(self) -> int:
        """What we have sent into the LAN, frames as they are. [byte]"""
        return _statistic(self.bridge, "tx_bytes")

    def received(self, host: int) -> int:
        """Return what came out of the bridge to a host. [byte]"""
        return _statistic(self.cable(host), "tx_bytes")


@contextmanager
def lan(hosts: int) -> Iterator[Lan]:
    """Yield a LAN of ourselves and so many *hosts*; it is gone afterwards."""
    bridge, net = f"nw{os.getpid()}", f"198.19.{os.getpid() % 250}"
    one = Lan(bridge, f"{net}.1", [f"{bridge}-{number}" for number in range(hosts)])
    with ExitStack() as exits:
        run("ip", "link", "add", bridge, "type", "bridge", *SNOOPING)
        exits.callback(run, "ip", "link", "delete", bridge)
        run("ip", "link", "set", bridge, "type", "bridge", "mcast_querier", "1")
        run("ip", "address", "add", f"{one.address}/24", "dev", bridge)
        run("ip", "link", "set", bridge, "up")
        for number, name in enumerate(one.hosts):
            run("ip", "netns", "add", name)
            exits.callback(run, "ip", "netns", "delete", name)
            _connect(one, number, f"{net}.{number + 2}/24")
        yield one


def _connect(one: Lan, number: int, address: str) -> None:
    cable, name = one.cable(number), one.hosts[number]
    run("ip", "link", "add", cable, "type", "veth", "peer", "name", DEVICE, "netns", name)
    run("ip", "link", "set", cable, "master", one.bridge, "up")
    run("ip", "-n", name, "address", "add", address, "dev", DEVICE)
    for device in (DEVICE, "lo"):
        run("ip", "-n", name, "link", "set", device, "up")


def _statistic(device: str, name: str) -> int:
    return int((STATISTICS / device / "statistics" / name).read_text())


def run(*words: str) -> None:
    """Run a command that must do.

    Raises:
        FileNotFoundError: There is none of that name.
        CalledProcessError: It failed.
    """
    subprocess.run(words, check=True, capture_output=True, text=True)
