"""The packet filter program of system calls, run as the kernel would, for both machines."""

import errno

import pytest

from nightwire.filters.sandbox.syscalls import (
    AARCH64,
    ALLOW,
    ARCHITECTURES,
    KILL,
    REFUSE,
    RULES,
    X86_64,
    landlock_ruleset,
    seccomp_program,
)

X86, ARM = 0xC000003E, 0xC00000B7
SHARED, PRIVATE, ANONYMOUS = 1, 2, 0x20
READ, WRITE, EXECUTE = 1, 2, 4


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Return what the program says to a call: a machine of five instructions."""
    steps = seccomp_program(ARCHITECTURES[machine])
    words = {0: number, 4: audit or ARCHITECTURES[machine].audit}
    words |= {16 + 8 * index: value & 0xFFFFFFFF for index, value in enumerate(arguments)}
    at = accumulator = 0
    while True:
        code, true, false, constant = steps[at]
        at += 1
        match code:
            case 0x20:
                accumulator = words[constant]
            case 0x06:
                return constant
            case 0x15:
                at += true if accumulator == constant else false
            case 0x35:
                at += true if accumulator >= constant else false
            case 0x45:
                at += true if accumulator & constant else false


@pytest.mark.parametrize(
    ("machine", "number", "arguments", "expected"),
    [
        ("x86_64", 0, (3,), ALLOW),  # read the channel
        ("x86_64", 0, (4,), REFUSE),
        ("x86_64", 1, (3,), ALLOW),  # write to it
        ("x86_64", 1, (1,), REFUSE),
        ("x86_64", 3, (5,), ALLOW),  # close anything but it
        ("x86_64", 3, (3,), REFUSE),
        ("x86_64", 9, (0, 9, READ | WRITE, PRIVATE | ANONYMOUS), ALLOW),  # mmap
        ("x86_64", 9, (0, 9, READ | WRITE, SHARED | ANONYMOUS), REFUSE),
        ("x86_64", 9, (0, 9, READ, 3), REFUSE),  # MAP_SHARED_VALIDATE
        ("x86_64", 9, (0, 9, READ | EXECUTE, PRIVATE), REFUSE),
        ("x86_64", 10, (0, 9, READ | EXECUTE), REFUSE),  # mprotect
        ("x86_64", 10, (0, 9, READ | WRITE), ALLOW),
        ("x86_64", 2, (), REFUSE),  # open
        ("x86_64", 41, (), REFUSE),  # socket
        ("x86_64", 57, (), REFUSE),  # fork
        ("x86_64", 59, (), REFUSE),  # execve
        ("x86_64", 62, (), REFUSE),  # kill
        ("x86_64", 101, (), REFUSE),  # ptrace
        ("x86_64", 157, (), REFUSE),  # prctl
        ("x86_64", 231, (), ALLOW),  # exit_group
        ("x86_64", 257, (), REFUSE),  # openat
        ("x86_64", 425, (), REFUSE),  # io_uring_setup
        ("x86_64", 0x40000000, (3,), KILL),  # read, by the x32 ABI
        ("aarch64", 63, (3,), ALLOW),  # read
        ("aarch64", 63, (4,), REFUSE),
        ("aarch64", 57, (3,), REFUSE),  # close
        ("aarch64", 222, (0, 9, READ | WRITE, PRIVATE | ANONYMOUS), ALLOW),  # mmap
        ("aarch64", 222, (0, 9, READ | WRITE, SHARED | ANONYMOUS), REFUSE),
        ("aarch64", 226, (0, 9, READ | EXECUTE), REFUSE),  # mprotect
        ("aarch64", 56, (), REFUSE),  # openat
        ("aarch64", 198, (), REFUSE),  # socket
        ("aarch64", 220, (), REFUSE),  # clone
        ("aarch64", 221, (), REFUSE),  # execve
        ("aarch64", 94, (), ALLOW),  # exit_group
    ],
)
def test_calls_are_allowed_or_refused(
    machine: str, number: int, arguments: tuple[int, ...], expected: int
) -> None:
    assert verdict(machine, number, *arguments) == expected


def test_all_other_calls_are_refused() -> None:
    for machine, known in (("x86_64", X86_64), ("aarch64", AARCH64)):
        others = set(range(512)) - set(known.values())
        assert {verdict(machine, number) for number in others} == {REFUSE}
    assert REFUSE & 0xFFFF == errno.EPERM


def test_calls_by_another_machines_numbers_end_the_process() -> None:
    assert verdict("x86_64", 0, 3, audit=ARM) == KILL
    assert verdict("aarch64", 63, 3, audit=X86) == KILL
    assert verdict("x86_64", 0, 3, audit=0x40000003) == KILL  # i386


def test_every_call_has_a_rule_and_every_rule_a_call() -> None:
    assert set(X86_64) == set(RULES)
    assert set(AARCH64) == set(RULES) - {"time"}


def test_a_ruleset_handles_all_that_its_kernel_knows() -> None:
    assert landlock_ruleset(1) == bytes.fromhex("ff1f000000000000")
    assert landlock_ruleset(4) == bytes.fromhex("ff7f000000000000 0300000000000000")
    assert landlock_ruleset(7) == bytes.fromhex("ffff000000000000 0300000000000000 0300000000000000")
