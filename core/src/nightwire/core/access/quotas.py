"""Byte quotas of users, by Kafka's own tool: librdkafka has no call for them.

The tool runs on Java.  Its credentials are in a file that no other user can read, never on its
command line.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence

from nightwire.core.kafka import identity
from nightwire.core.runtime import install_command, java_home
from nightwire.schemas import MendableError

TOOL = "kafka.admin.ConfigCommand"
PRODUCE, CONSUME = "producer_byte_rate", "consumer_byte_rate"
TIMEOUT = 60.0
"""Longest wait for the tool. [s]"""

_LINE = re.compile(r"Quota configs for user-principal '([^']+)' are (.*)")
_RATE = re.compile(rf"(?:{PRODUCE}|{CONSUME})=([0-9.E+]+)")

LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


class QuotaError(MendableError):
    """Kafka's tool could not be run, or refused; the message says why, and what to do."""


def quotas(bootstrap: str, user: str | None = None) -> dict[str, int]:
    """Return the quota of each user that has one: the smaller of its byte rates. [byte/s]

    Args:
        bootstrap: Kafka's address.
        user: This user alone.

    Raises:
        QuotaError: The tool cannot be run, or refuses.
    """
    whom = ["--entity-type", "users", *(["--entity-name", user] if user else [])]
    return read_quotas(_run(bootstrap, "--describe", *whom))


def set_quota(bootstrap: str, user: str, rate: int | None) -> None:
    """Limit what *user* reads, and writes, to *rate*; None for no limit. [byte/s]

    Raises:
        QuotaError: The tool cannot be run, or refuses.
    """
    change = f"{PRODUCE}={rate},{CONSUME}={rate}" if rate else f"{PRODUCE},{CONSUME}"
    action = "--add-config" if rate else "--delete-config"
    _run(bootstrap, "--alter", "--entity-type", "users", "--entity-name", user, action, change)


def read_quotas(output: str) -> dict[str, int]:
    """Return the byte rates of users in the *output* of Kafka's tool.  Pure."""
    found = {user: _RATE.findall(rates) for user, rates in _LINE.findall(output)}
    return {user: int(min(map(float, rates))) for user, rates in found.items() if rates}


def java_properties(client: Mapping[str, str]) -> dict[str, str]:
    """Return librdkafka's credentials as properties of Java's client.  Pure.

    Raises:
        QuotaError: A property is not supported; the message names it.
    """
    found = {name: client[name] for name in ("security.protocol", "sasl.mechanism") if name in client}
    if mechanism := client.get("sasl.mechanism"):
        if mechanism not in LOGIN:
            raise QuotaError(f"sasl.mechanism={mechanism}: quotas are set by PLAIN or SCRAM alone")
        user, secret = (_quoted(client[f"sasl.{name}"]) for name in ("username", "password"))
        found["sasl.jaas.config"] = f"{LOGIN[mechanism]} required username={user} password={secret};"
    if ca := client.get("ssl.ca.location"):
        found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": ca}
    return found


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _run(bootstrap: str, *words: str) -> str:
    # mode 0600
    with tempfile.NamedTemporaryFile("w", prefix="nightwire-", suffix=".properties") as file:
        for name, value in java_properties(identity(bootstrap)).items():
            escaped = value.replace("\\", "\\\\")
            file.write(f"{name}={escaped}\n")
        file.flush()
        command = [*_java(), TOOL, "--bootstrap-server", bootstrap, "--command-config", file.name, *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        except subprocess.TimeoutExpired as error:
            raise QuotaError(f"Kafka's tool for quotas gave no answer in {TIMEOUT:g} s") from error
    if done.returncode:
        raise QuotaError(f"Kafka's tool for quotas failed: {_reason(done.stdout + done.stderr)}")
    return done.stdout


def _java() -> Sequence[str]:
    try:
        from nightwire.core.stack.kafka.jars import jar_folder

        jars = jar_folder()
    except (ModuleNotFoundError, OSError) as error:
        raise QuotaError(f"quotas are set by Kafka's own jars: {install_command('stack')}") from error
    quick = ["-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    return [str(java_home() / "bin" / "java"), *quick, "-cp", f"{jars}{os.sep}*"]


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    wanted = [line for line in lines if "Exception" in line or "Error" in line]
    return (wanted or lines or ["without a message"])[0]
