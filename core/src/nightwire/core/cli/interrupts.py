"""Ctrl-C is answered also while the main thread is in a call that sees no signals, as of Kafka."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

STDERR = 2

GRACE = 2.0
"""How long a process may take to end before Ctrl-C is answered in its place. [s]"""

INTERRUPTED = 128 + signal.SIGINT

TOLD = b"stopping; Ctrl-C again ends it at once\n"


@contextmanager
def answering_interrupts() -> Iterator[None]:
    """Say of a Ctrl-C that ends nothing how to end it: by the next one, at once.

    In another thread than the main one, which alone gets signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    ended = threading.Event()
    threading.Thread(target=_answer, args=(signals, ended), name="interrupts", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(before)
        os.close(writing)


def _answer(signals: int, ended: threading.Event) -> None:
    told = False
    while numbers := os.read(signals, 4096):
        if signal.SIGINT not in numbers or ended.wait(GRACE):
            continue
        if told:
            os._exit(INTERRUPTED)
        told = True
        # forked children, which the terminal interrupts too, write to the same pipe; who reads the
        # line answers to it, so nothing is dropped after it
        while select.select([signals], [], [], 0)[0] and os.read(signals, 4096):
            pass
        os.write(STDERR, TOLD)
    os.close(signals)
