"""Ports on this machine."""

import os
import socket
from collections.abc import Mapping
from random import SystemRandom

USUAL = {
    "kafka": 9092,
    "controller": 9093,
    "schema_registry": 8081,
    "vtp_authors": 8098,
    "vtp_subscribers": 8099,
    "prometheus": 9090,
    "public_kafka": 9094,
    "users": 8082,
    "directory": 8083,
    "portal": 8084,
    "archive": 8085,
    "tokens": 9096,
    "public_schema_registry": 8443,
    "public_users": 8444,
    "public_directory": 8445,
    "public_portal": 8446,
    "public_archive": 8447,
    "public_vtp_authors": 8498,
    "public_vtp_subscribers": 8499,
}
"""Where people look for each of them."""

QUIET = range(15_000 + os.getpid() % 16, 32_000, 16)
"""Ports below those that Linux gives to outgoing connections, so that none is taken meanwhile; each
process draws from a sixteenth of them, so that two that draw at once seldom draw the same."""
MOST_GIVEN = 500


_given: set[int] = set()


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether *port* can be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that is free now, and was not given here of late."""
    if len(_given) > MOST_GIVEN:
        _given.clear()
    port = SystemRandom().choice(QUIET)
    while port in _given or not is_free(port, host):
        port = SystemRandom().choice(QUIET)
    _given.add(port)
    return port


def choose(names: list[str], before: Mapping[str, int], *, usual: bool) -> dict[str, int]:
    """Return a free port for each of *names*: the one of last time, else the usual one, else any.

    Args:
        names: Who needs one.
        before: Ports of the last run.
        usual: Whether to try the well-known ports.
    """
    chosen: dict[str, int] = {}
    for name in names:
        wishes = [before.get(name), USUAL.get(name) if usual else None]
        taken = set(chosen.values())
        fitting = (port for port in wishes if port and port not in taken and is_free(port))
        chosen[name] = next(fitting, None) or _another(taken)
    return chosen


def _another(taken: set[int]) -> int:
    while (port := free_port()) in taken:
        pass
    return port
