"""A group behind a slow link: what it did not get whole is owed until it did, or it expires."""

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import TopicPartition

from archive.tests.conftest import message, packet, put, writer
from archive.tests.test_http_api import answering
from directory.tests.serve.served import Directory
from nightwire.archive import Archive
from nightwire.core.kafka import admin, consumer, ensure_topics, producer
from nightwire.core.stack import Broker, free_port
from nightwire.directory.mediator.owed_log import OwedLog
from nightwire.schemas.records import OWED as RECORD
from nightwire.schemas.serving import KafkaAccess, RefusedError
from nightwire.schemas.topics import OWED, TopicSettings, settings

pytestmark = pytest.mark.kafka

Topic = Callable[..., str]
LIMIT = 0.5
"""Age above which less is sent. [s]"""


def fill(kafka: str, topic: str, count: int, partitions: int = 1, size: int = 40_000) -> None:
    client = producer(kafka)
    for number in range(count):
        client.produce(topic, b"%d " % number + bytes(size), partition=number % partitions)
    assert client.flush(60) == 0


class Client:
    """Asks one question after the other."""

    def __init__(self, here: Any, topic: str, group: str, member: str = "") -> None:
        said = f"group={group}&member={member}&as=json&stamps=false&slow={LIMIT}&timeout=0.2&bytes=400000"
        self.http, self.question = here.http, f"/topics/{topic}/records?{said}"

    def ask(self) -> tuple[list[tuple[int, int]], httpx.Response]:
        """Return partition and offset of the next records, and the answer."""
        answer = self.http.get(self.question)
        assert answer.is_success, answer.text
        self._answered = answer.links["next"]["url"]
        return [(one["partition"], one["offset"]) for one in answer.json()], answer

    def go_on(self) -> None:
        """Have what was answered."""
        self.question = self._answered

    def until(self, enough: Callable[[httpx.Response], bool], pause: float = 0.0) -> list[tuple[int, int]]:
        """Return all records that come until an answer is *enough*; each takes *pause*. [s]"""
        found: list[tuple[int, int]] = []
        while True:
            records, answer = self.ask()
            found += records
            time.sleep(pause if records else 0.0)  # so slow is the link
            self.go_on()
            if enough(answer):
                return found


def owe(kafka: str, topic: str, name: str, first: int, count: int) -> None:
    """Say that of partition 0 a group got nothing of so many alerts; of none: what nobody reads."""
    said = {"group": name, "topic": topic, "partition": 0, "first": first, "sent": b"\4" * count}
    ensure_topics(kafka, [settings(OWED)])
    client = producer(kafka)
    value = RECORD.encode(said) if count else b"?"
    client.produce(OWED, value, f"{name}|{topic}|0|{first}".encode(), partition=0)
    assert client.flush(60) == 0


def stand(kafka: str, topic: str, name: str, offset: int) -> None:
    """Let a group have read what lies before *offset*."""
    keeper = consumer(kafka, group=name)
    keeper.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    keeper.close()


def forget(kafka: str, topic: str, offset: int) -> None:
    """Let Kafka delete what lies before *offset*."""
    client = admin(kafka)  # is held: what it has promised goes with it
    for future in client.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


def expired(said: Iterable[str]) -> list[int]:
    """Return the offsets that headers of answers name."""
    spans = [one.partition(":")[2].split("-") for text in said for one in text.split(",") if one]
    return [offset for first, last in spans for offset in range(int(first), int(last) + 1)]


def group() -> str:
    return f"g{os.urandom(4).hex()}"


def owed(answer: httpx.Response) -> int:
    return int(answer.headers.get("Nightwire-Owed", -1))


def settled(answer: httpx.Response) -> bool:
    return not answer.json() and owed(answer) == 0 and "Nightwire-At-End" in answer.headers


def skips(answer: httpx.Response) -> bool:
    return owed(answer) > 20


def follows(answer: httpx.Response) -> bool:
    return "paid=0" in answer.links["next"]["url"]


def classes(here: Any, topic: str) -> dict[str, float]:
    names = ("full", "reduced", "skipped", "followed", "expired", "empty")
    return {one: here.count("nightwire_slow_link_records_total", topic=topic, became=one) for one in names}


def test_what_was_skipped_follows_once_and_each_is_in_one_class(
    here: Any, kafka: str, fresh_topic: Topic
) -> None:
    """Though each first answer is lost: it is decided anew."""
    topic, count = fresh_topic(partitions=2), 120
    fill(kafka, topic, count, 2)
    client, found = Client(here, topic, group()), list[tuple[int, int]]()
    while (answer := client.ask()[1]) and not settled(answer):
        time.sleep(LIMIT if len(found) < 20 else 0.0)
        found += client.until(lambda _: True, pause=LIMIT if len(found) < 20 else 0.0)
    assert sorted(found) == [(number, offset) for number in range(2) for offset in range(count // 2)]
    became = classes(here, topic)
    assert became["full"] + became["skipped"] == count
    assert became["followed"] == became["skipped"] > 20


def test_an_answer_is_acknowledged_to_the_next_process(serving: Any, kafka: str, fresh_topic: Topic) -> None:
    """It knows what was skipped beside the last answer, and what of it followed."""
    topic, count = fresh_topic(), 120
    fill(kafka, topic, count)
    with serving(kafka) as here:
        client = Client(here, topic, group())
        found = client.until(skips, pause=LIMIT)
    with serving(kafka) as here:
        client.http = here.http
        found += client.until(follows)
        left = count - len(found)
    with serving(kafka) as here:
        client.http = here.http
        found += client.until(settled)
    assert sorted(found) == [(0, offset) for offset in range(count)]
    assert left


def test_what_was_decided_before_the_group_had_a_position_is_void(
    here: Any, kafka: str, fresh_topic: Topic
) -> None:
    """Whoever decided that was killed before anything was acknowledged; what nobody can read is
    passed over."""
    topic, name = fresh_topic(), group()
    fill(kafka, topic, 5, size=10)
    for first in (0, 2):
        owe(kafka, topic, name, first, 3)
    owe(kafka, topic, name, 1_000, 0)
    found = Client(here, topic, name).until(settled)
    assert found == [(0, offset) for offset in range(5)]


def test_what_follows_at_once_is_bounded_though_alerts_are_larger_than_before(
    here: Any, kafka: str, fresh_topic: Topic
) -> None:
    topic, name, count = fresh_topic(), group(), 40
    fill(kafka, topic, count, size=100_000)
    owe(kafka, topic, name, 0, count)
    stand(kafka, topic, name, count)
    client, sizes = Client(here, topic, name), list[int]()

    def over(answer: httpx.Response) -> bool:
        sizes.append(len(answer.json()))
        return settled(answer)

    assert client.until(over) == [(0, offset) for offset in range(count)]
    assert max(sizes) <= 16


def test_who_took_a_partition_last_keeps_what_it_is_owed(kafka: str, fresh_topic: Topic) -> None:
    """A directory that was stopped, and goes on, does not write over what is known since."""
    topic, name = fresh_topic(), group()
    ensure_topics(kafka, [settings(OWED)])
    before, after, block = OwedLog(kafka, name, topic), OwedLog(kafka, name, topic), ((topic, 0), 0)
    before.acquire([0])
    before.write({block: b"\4"})
    assert after.acquire([0]) == {block: b"\4"}
    after.write({block: b"\4\4"})
    with pytest.raises(RefusedError):
        before.write({block: None})
    assert OwedLog(kafka, name, topic).acquire([]) == {block: b"\4\4"}


@pytest.mark.proof
@pytest.mark.slow
def test_a_directory_that_was_stopped_for_longer_than_its_session_writes_nothing(
    here: Any, kafka: str, fresh_topic: Topic, tmp_path: Path
) -> None:
    """What it is told after that was paid is known already, and the rest, too."""
    topic, name, count = fresh_topic(), group(), 120
    fill(kafka, topic, count)
    stopped = Directory.on(kafka, tmp_path)
    client = Client(stopped, topic, name)
    found = client.until(skips, pause=LIMIT)
    found += client.until(follows)
    stopped.child.send_signal(signal.SIGSTOP)
    other = Client(here, topic, name)
    other.question = client.question
    found += other.until(settled)
    stopped.child.send_signal(signal.SIGCONT)
    answer = stopped.http.get(client.question)
    stopped.stop()
    assert OwedLog(kafka, name, topic).acquire([]) == {}, answer.text
    assert sorted(found) == [(0, offset) for offset in range(count)]


@pytest.mark.proof
@pytest.mark.slow
def test_members_share_and_take_over_what_is_owed(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, name, count = fresh_topic(partitions=2), group(), 120
    fill(kafka, topic, count, 2)
    first = Client(here, topic, name, "first")
    found = first.until(skips, pause=LIMIT)
    second = Client(here, topic, name, "second")
    while len({*found}) < count:
        for one in (first, second):
            found += one.until(lambda _: True)
    assert len(found) == count


class Heard:
    """What answers say has expired."""

    def __init__(self) -> None:
        self._said: list[str] = []

    @property
    def offsets(self) -> list[int]:
        return expired(self._said)

    def settled(self, answer: httpx.Response) -> bool:
        self._said.append(answer.headers.get("Nightwire-Expired", ""))
        return settled(answer)


def test_what_kafka_has_forgotten_is_named_and_counted(here: Any, kafka: str, fresh_topic: Topic) -> None:
    topic, count = fresh_topic(), 120
    fill(kafka, topic, count)
    client, heard = Client(here, topic, group()), Heard()
    found = client.until(skips, pause=LIMIT)
    forget(kafka, topic, count)
    found += client.until(heard.settled)
    assert sorted([*found, *((0, one) for one in heard.offsets)]) == [(0, offset) for offset in range(count)]
    assert classes(here, topic)["expired"] == len(heard.offsets) > 20


def test_what_kafka_forgot_before_a_group_read_it_is_named_and_counted(
    here: Any, kafka: str, fresh_topic: Topic
) -> None:
    """While nobody read, and between an answer that was lost and the next."""
    topic, name, heard = fresh_topic(), group(), Heard()
    fill(kafka, topic, 60, size=10)
    stand(kafka, topic, name, 30)
    forget(kafka, topic, 50)
    client = Client(here, topic, name)
    assert client.until(heard.settled) == [(0, offset) for offset in range(50, 60)]
    assert heard.offsets == [*range(30, 50)]
    fill(kafka, topic, 10, size=10)
    while not client.ask()[0]:
        client.go_on()
    forget(kafka, topic, 65)
    assert client.until(heard.settled) == [(0, offset) for offset in range(65, 70)]
    assert heard.offsets == [*range(30, 50), *range(60, 65)]
    became = classes(here, topic)
    assert (became["skipped"], became["expired"], became["full"]) == (25, 25, 15)
    here.http.post(client.question.replace("/records", "/commit")).raise_for_status()
    with closing(consumer(kafka, group=name)) as reader:
        assert [one.offset for one in reader.committed([TopicPartition(topic, 0)], timeout=30)] == [70]


@pytest.mark.proof
def test_what_kafka_has_forgotten_comes_from_the_archive(
    fresh_broker: Broker, serving: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 50 that are owed the archive has 29, in pages of one, Kafka 10; nobody has 10, which are
    named; one held no alert.  So it is of a group that stopped at 10, and read nothing of them
    before they went.  While the archive is away, what Kafka has comes, and nothing expires."""
    monkeypatch.setattr("nightwire.archive.http_api.PAGE_BYTES", 1)
    monkeypatch.setattr("nightwire.archive.querying.survey_tables.BATCH_PACKETS", 1)
    kafka, owes, stopped = fresh_broker.bootstrap, group(), group()
    ensure_topics(kafka, [TopicSettings("alerts.sim", 1)])
    archived = [offset for offset in range(30) if offset != 15]  # a transaction's marker
    put(writer(tmp_path), *(packet(offset) for offset in archived))
    client = producer(kafka)
    for number in range(60):
        client.produce("alerts.sim", message(number + 1))
    assert client.flush(60) == 0
    forget(kafka, "alerts.sim", 40)
    owe(kafka, "alerts.sim", owes, 0, 50)
    stand(kafka, "alerts.sim", owes, 50)
    stand(kafka, "alerts.sim", stopped, 10)
    heard, left = {owes: Heard(), stopped: Heard()}, {owes: 40, stopped: 30}

    def only_the_past(name: str) -> Callable[[httpx.Response], bool]:
        def there(answer: httpx.Response) -> bool:
            heard[name].settled(answer)
            return not answer.json() and owed(answer) == left[name] and "Nightwire-At-End" in answer.headers

        return there

    with serving(kafka, archive=f"http://127.0.0.1:{free_port()}") as here:
        for name in left:
            asker = Client(here, "alerts.sim", name)
            found = [offset for _, offset in asker.until(only_the_past(name))]
            here.http.post(asker.question.replace("/records", "/commit")).raise_for_status()
            assert {*found} == {*range(40, 60)}  # on a busy machine some come reduced, and then whole
            assert not heard[name].offsets
    with answering(Archive(tmp_path), KafkaAccess({})) as http:
        port = httpx.URL(http.base_url).port
        with serving(kafka, archive=f"http://127.0.0.1:{port}") as here:
            for name, first in ((owes, 0), (stopped, 10)):
                more = Client(here, "alerts.sim", name).until(heard[name].settled)
                assert sorted(offset for _, offset in more) == [one for one in archived if one >= first]
                assert heard[name].offsets == [*range(30, 40)]
            became = classes(here, "alerts.sim")
    assert [became[one] for one in ("followed", "expired", "empty")] == [29 + 19, 20, 2]


@pytest.mark.parametrize(
    "wrong",
    [
        "slow=0",
        "slow=nan",
        "slow=x",
        "slow=1&rank=colour",
        "slow=1&paid=0:1",
        "slow=1&paid=0:0-10000",
        "slow=1&paid=0:0-99999999,0:99999999-0",
    ],
)
def test_a_wrong_question_is_refused(here: Any, fresh_topic: Topic, wrong: str) -> None:
    answer = here.http.get(f"/topics/{fresh_topic()}/records?group=g&{wrong}")
    assert answer.status_code == 400
    assert wrong.rpartition("&")[2].partition("=")[2][:3] in answer.json()["message"]


@pytest.mark.parametrize(
    ("topic", "text", "why"),
    [
        ("alerts.sim", "magnitude <", "first: "),
        ("alerts.nobody", "flux < 1", "first: "),
        ("alerts.sim", "def f(alert):\n    while True:\n        pass", "line 2"),
        ("alerts.sim", "import os\ndef f(alert):\n    return os.getpid()", "line 1"),
        ("alerts.sim", "def f(alert, other):\n    return 1", "must take one argument"),
        ("alerts.sim", "def f(alert):\n    return " + "(" * 3000, "first: "),
        ("alerts.sim", "def f(alert):\n    return 1" + " " * 5000, "may have 4,096"),
    ],
)
def test_a_wrong_handler_is_refused(here: Any, fresh_topic: Topic, topic: str, text: str, why: str) -> None:
    """Of a survey that nobody knows, too; functions of Python are compiled apart, and never run."""
    named = {"alerts.nobody": fresh_topic("alerts")}.get(topic, topic)
    answer = here.http.get(f"/topics/{named}/records", params={"group": "g", "slow": 1, "first": text})
    assert (answer.status_code, why in answer.json()["message"]) == (400, True), answer.text


def test_events_have_no_slow_link(here: Any, fresh_topic: Topic) -> None:
    url, accept = f"/topics/{fresh_topic()}/records?group=g&slow=1", {"Accept": "text/event-stream"}
    answer = here.http.get(url, headers=accept)
    assert (answer.status_code, "polls" in answer.json()["message"]) == (400, True)
