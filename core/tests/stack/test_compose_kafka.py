"""The Kafka of compose, by the entry of its image: with a door for other machines where it is told
so, and as it was where it is not.
"""

import os
import re
import secrets
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from nightwire.core.runtime import die_with_parent, free_port, java_home
from nightwire.core.stack.kafka.auth import operator_credentials
from nightwire.core.stack.kafka.jars import jar_folder
from nightwire.core.stack.kafka.storage import random_uuid
from nightwire.core.tls.reload import reload_brokers
from nightwire.core.tls.site import Site
from tests._serving import await_port
from tests._tracked import ROOT
from tests._waiting import until

pytestmark = pytest.mark.kafka

PASSWORD, SECRET = secrets.token_urlsafe(), secrets.token_urlsafe()
QUIET: dict[str, Any] = {"log_level": 0, "error_cb": lambda _error: None}
IN_THE_IMAGE = ("9092", "19092", "9093", "29092", "9404")
"""Ports inside a container; here they are others."""


class ComposeBroker:
    """One broker as the image runs it, but for its folders and ports."""

    def __init__(self, folder: Path, *, public: bool) -> None:
        self.site, self.log = Site(folder / "tls"), folder / "log"
        self.site.init()
        ports = {name: free_port() for name in IN_THE_IMAGE}
        self.inside, self.public = (f"127.0.0.1:{ports[name]}" for name in ("9092", "29092"))
        self._copy_image(folder, ports)
        env = {
            "PATH": f"{java_home() / 'bin'}:{os.environ['PATH']}",
            "JDK_JAVA_OPTIONS": os.environ["JDK_JAVA_OPTIONS"],
            "KAFKA_NODE": "1",
            "KAFKA_HOST": "127.0.0.1",
            "KAFKA_OUTSIDE": f"127.0.0.1:{ports['19092']}",
            "KAFKA_VOTERS": f"1@127.0.0.1:{ports['9093']}",
            "KAFKA_CLUSTER_ID": random_uuid(),
            "KAFKA_SUPER_USER": "nightwire.stack",
            "KAFKA_PASSWORD": PASSWORD,
            "KAFKA_PUBLIC": self.public if public else "",
            "KAFKA_KEYSTORE": str(self.site.server),
        }
        with self.log.open("wb") as out:
            self.child = subprocess.Popen(
                ["sh", str(folder / "image" / "entry.sh")], env=env, stdout=out, stderr=out,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )  # fmt: skip
        await_port(ports["9092"], lambda: self.child.poll() is None, self.log, 90)
        self.operator = AdminClient(
            {"bootstrap.servers": self.inside, **QUIET, **operator_credentials(PASSWORD)}
        )
        self.operator.list_topics(timeout=60)

    def _copy_image(self, folder: Path, ports: dict[str, int]) -> None:
        """Lay out what the image holds in *folder*."""
        for name in ("image", "tmp", "data"):
            (folder / name).mkdir()
        places = {"/tmp": "tmp", "/opt/kafka": "image", "/var/lib/kafka": "data"}  # none is part of another
        shutil.copy(ROOT / "core/src/nightwire/core/stack/kafka/jmx.yml", folder / "image")
        (folder / "image" / "jars").symlink_to(jar_folder())
        for source in (ROOT / "core" / "kafka").iterdir():
            text = re.sub("|".join(places), lambda found: str(folder / places[found[0]]), source.read_text())
            text = re.sub(
                r"(?<=[:=])(9092|19092|9093|29092|9404)\b", lambda found: str(ports[found[0]]), text
            )
            (folder / "image" / source.name).write_text(
                text.replace("=3\n", "=1\n").replace("isr=2", "isr=1")
            )

    def owner(self, **other: str) -> dict[str, Any]:
        """Return librdkafka's properties of an owner outside, but for what is *other*."""
        usual = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.site.ca),
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "ann",
            "sasl.password": SECRET,
        }
        return {"bootstrap.servers": self.public, **QUIET, **usual, **other}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., ComposeBroker]]:
    """Yield a function that starts a broker."""
    brokers: list[ComposeBroker] = []

    def start(**how: bool) -> ComposeBroker:
        brokers.append(ComposeBroker(tmp_path, **how))
        return brokers[-1]

    yield start
    for one in brokers:
        one.child.terminate()
        one.child.wait(60)


def test_other_machines_come_in_by_tls_and_a_password_alone(started: Callable[..., ComposeBroker]) -> None:
    broker = started(public=True)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    change = UserScramCredentialUpsertion("ann", info, SECRET.encode())
    for done in broker.operator.alter_user_scram_credentials([change]).values():
        done.result(60)
    (found,) = AdminClient(broker.owner()).list_topics(timeout=60).brokers.values()
    assert f"{found.host}:{found.port}" == broker.public
    for wrong in (
        {"sasl.password": "a guess"},
        {"security.protocol": "SASL_PLAINTEXT"},
        {"sasl.mechanism": "PLAIN", "sasl.username": "nightwire.stack", "sasl.password": PASSWORD},
    ):
        with pytest.raises(KafkaException):
            AdminClient(broker.owner(**wrong)).list_topics(timeout=3)
    host, port = broker.public.split(":")
    before = ssl.get_server_certificate((host, int(port)))
    broker.site.init()
    assert reload_brokers(broker.operator) == 1
    until(
        lambda: ssl.get_server_certificate((host, int(port))) != before,
        "the broker goes on with the old certificate",
    )


def test_without_being_told_so_there_is_no_such_door(started: Callable[..., ComposeBroker]) -> None:
    broker = started(public=False)
    with pytest.raises(KafkaException):
        AdminClient(broker.owner()).list_topics(timeout=2)
    assert "PUBLIC" not in (broker.log.parent / "tmp" / "server.properties").read_text()
