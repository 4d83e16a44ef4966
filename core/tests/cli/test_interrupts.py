"""Ctrl-C is answered, whatever the process waits for."""

import signal
import socket
import subprocess
import sys

import pytest

from nightwire.core.cli.interrupts import INTERRUPTED, answering_interrupts

WAITS = """
import sys
from confluent_kafka.admin import AdminClient
from nightwire.core.runtime import stopping
from nightwire.core.cli.interrupts import answering_interrupts

with answering_interrupts(), stopping():
    print("waits", flush=True)
    AdminClient({"bootstrap.servers": sys.argv[1], "log_level": 0}).list_topics(timeout=3600)
"""


@pytest.mark.slow
def test_who_waits_for_a_mute_kafka_is_told_and_the_second_ctrl_c_ends_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        command = [sys.executable, "-c", WAITS, f"127.0.0.1:{mute.getsockname()[1]}"]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        assert child.stderr is not None
        assert child.stdout.readline() == "waits\n"
        child.send_signal(signal.SIGINT)
        assert child.stderr.readline() == "stopping; Ctrl-C again ends it at once\n"
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
    assert child.returncode == INTERRUPTED


def test_signals_wake_whom_they_woke_before() -> None:
    reading, writing = socket.socketpair()
    with reading, writing:
        writing.setblocking(False)
        before = signal.set_wakeup_fd(writing.fileno())
        try:
            with answering_interrupts():
                pass
            assert signal.set_wakeup_fd(before) == writing.fileno()
        finally:
            signal.set_wakeup_fd(before)
