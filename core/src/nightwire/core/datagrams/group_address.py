"""The address of a multicast group, and sockets that send to it and listen there."""

import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from nightwire.schemas import MendableError

BUFFER = 16 << 20
"""Room that the kernel is asked for. [byte]  Linux gives net.core.rmem_max at most, root more."""
MOST_GROUPS = 16
"""Length of the prefix of the widest range of groups."""
IP_MULTICAST_ALL = 49
IP_ADD_SOURCE_MEMBERSHIP = 39
SO_RCVBUFFORCE = 33
SIOCGIFADDR = 0x8915


class GroupAddressError(MendableError):
    """Text that is no address of a multicast group, or an interface that is not there."""


@dataclass(frozen=True)
class GroupAddress:
    """A multicast group, and how it is reached.

    Attributes:
        group: Its IPv4 address.
        port: Its UDP port.
        interface: Name or address of the interface; empty leaves the choice to the routes.
        source: Address of the only sender that is listened to; empty for any.
    """

    group: str
    port: int
    interface: str = ""
    source: str = ""

    @property
    def name(self) -> str:
        """The group as text: ``239.1.2.3:5000``."""
        return f"{self.group}:{self.port}"


def parse_group(text: str, interface: str | None = None) -> GroupAddress:
    """Return the group that ``[SOURCE@]GROUP:PORT`` names.

    Raises:
        GroupAddressError: It names none, or there is no such interface.
    """
    source, _, rest = text.rpartition("@")
    group, _, port = rest.rpartition(":")
    try:
        address, number = IPv4Address(group), int(port)
        sender = str(IPv4Address(source)) if source else ""
    except ValueError:
        address, number, sender = IPv4Address("0.0.0.0"), 0, ""  # noqa: S104  (no group either)
    if not address.is_multicast or not 0 < number < 1 << 16:
        raise GroupAddressError(
            f"{text!r} is no multicast group: write [SOURCE@]GROUP:PORT, such as 239.10.0.1:5400 "
            "(239.0.0.0 to 239.255.255.255 are a site's own)"
        )
    found = GroupAddress(str(address), number, interface or "", sender)
    interface_address(found.interface)
    return found


def parse_groups(text: str) -> list[str]:
    """Return the groups that ``NETWORK/LENGTH:PORT`` names, but for its first and last address.

    Raises:
        GroupAddressError: It names none, or more than 65,534.
    """
    network, _, port = text.rpartition(":")
    found = None
    with suppress(ValueError):
        found = IPv4Network(network)
    if found is None or not found.is_multicast or found.prefixlen < MOST_GROUPS or not port.isdecimal():
        raise GroupAddressError(
            f"{text!r} is no range of multicast groups: write NETWORK/LENGTH:PORT, such as 239.10.0.0/24:5400"
        )
    return [parse_group(f"{one}:{port}").name for one in found.hosts()]


def interface_address(interface: str) -> str:
    """Return the IPv4 address of an interface that is given by name or address.

    Raises:
        GroupAddressError: There is none.
    """
    with suppress(AddressValueError):
        return str(IPv4Address(interface or "0.0.0.0"))  # noqa: S104  (the routes decide)
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            answer = fcntl.ioctl(asked, SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
    except (OSError, ImportError) as error:
        there = ", ".join(name for _, name in socket.if_nameindex())
        raise GroupAddressError(
            f"no interface {interface!r} with an IPv4 address; there are {there}: name one with --interface"
        ) from error
    return socket.inet_ntoa(answer[20:24])


def open_sender(address: GroupAddress, *, ttl: int = 1) -> socket.socket:
    """Return a socket that sends to the group; *ttl* 1 stays in the LAN.

    Raises:
        GroupAddressError: No route leads there.
    """
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, ttl)
        if address.interface:
            there = socket.inet_aton(interface_address(address.interface))
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, there)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
        sender.connect((address.group, address.port))
    except OSError as error:
        sender.close()
        raise GroupAddressError(f"nothing can be sent to {address.name}: {error}; see --interface") from error
    return sender


def open_receiver(address: GroupAddress) -> socket.socket:
    """Return a socket, not blocking, that hears the group; others of this machine hear it too.

    Raises:
        GroupAddressError: The group cannot be joined.
    """
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        with suppress(OSError):  # root alone
            receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
        with suppress(OSError):  # Linux: not what other sockets of this machine have joined
            receiver.setsockopt(socket.IPPROTO_IP, IP_MULTICAST_ALL, 0)
        receiver.bind((address.group, address.port))
        _join(receiver, address)
    except OSError as error:
        receiver.close()
        raise GroupAddressError(f"{address.name} cannot be joined: {error}; see --interface") from error
    receiver.setblocking(False)
    return receiver


def _join(receiver: socket.socket, address: GroupAddress) -> None:
    group, here = socket.inet_aton(address.group), socket.inet_aton(interface_address(address.interface))
    if address.source:
        asked = group + here + socket.inet_aton(address.source)
        receiver.setsockopt(socket.IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, asked)
    else:
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + here)
