"""The registry without HTTP and Kafka: servers that share a log say the same."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest

from nightwire.schemas import SIM_ALERT_ID, sim_alert_schema
from nightwire.schemas.registry import store as _store
from nightwire.schemas.registry.api import Api, ApiError, Request
from nightwire.schemas.registry.store import READ_BACK_TIMEOUT, Store, UnavailableError
from nightwire.schemas.registry.subjects import FIRST_FREE_ID, Rejected, Subjects, Version


class MemoryLog:
    """A log that its followers read at once, except those that lag."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.followers: list[Callable[[bytes], None]] = []
        self.away, self.renewed = False, 0

    def renew(self) -> None:
        self.renewed += 1

    def append(self, key: str, value: bytes) -> None:
        if self.away:
            raise UnavailableError("Kafka does not answer")
        self.values.append(value)
        for follow in self.followers:
            follow(value)


def server(log: MemoryLog) -> Api:
    """Return a server that has read *log* and follows it."""
    store = Store()
    store.restart()
    for value in log.values:
        store.take(value)
    store.end_of_log()
    log.followers.append(store.take)
    return Api(store, log)


def schema(name: str, *fields: str) -> dict[str, Any]:
    """Return a record schema whose fields are longs."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": "long"} for field in fields]}


def post(subject: str, body: Any, **more: Any) -> Request:
    """Return a request that posts a schema."""
    return Request({"subject": subject}, {}, json.dumps({"schema": json.dumps(body), **more}).encode())


def code(ask: Callable[[Request], Any], request: Request) -> int:
    """Return the error code of an answer."""
    with pytest.raises(ApiError) as caught:
        ask(request)
    assert caught.value.status == int(str(caught.value.code)[:3])
    return caught.value.code


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


@pytest.fixture
def api(log: MemoryLog) -> Api:
    return server(log)


def test_our_own_schemas_are_there_before_anything_is_written(api: Api, log: MemoryLog) -> None:
    assert "alerts.sim-value" in api.subjects(Request())
    assert json.loads(api.schema(Request({"id": str(SIM_ALERT_ID)}))["schema"]) == sim_alert_schema()
    assert api.register(post("alerts.sim-value", sim_alert_schema())) == {"id": SIM_ALERT_ID}
    assert log.values == []


def test_a_survey_keeps_its_own_id(api: Api) -> None:
    assert api.register(post("alerts.lsst-value", schema("a", "x"), id=1100)) == {"id": 1100}
    assert api.register(post("alerts.lsst-value", schema("a", "x"), id=1100)) == {"id": 1100}
    assert api.versions(Request({"subject": "alerts.lsst-value"})) == [1]


def test_ids_are_given_from_the_first_free_one(api: Api) -> None:
    assert api.register(post("a-value", schema("a"))) == {"id": FIRST_FREE_ID}
    assert api.register(post("b-value", schema("b"))) == {"id": FIRST_FREE_ID + 1}
    assert api.register(post("c-value", schema("a"))) == {"id": FIRST_FREE_ID}, (
        "an equal schema has an equal id"
    )


def test_white_space_and_order_of_keys_make_no_new_schema(api: Api) -> None:
    first = api.register(post("a-value", schema("a", "x")))
    shuffled = json.dumps(dict(reversed(schema("a", "x").items())), indent=3)
    body = json.dumps({"schema": shuffled}).encode()
    assert api.register(Request({"subject": "a-value"}, {}, body)) == first
    assert api.look_up(Request({"subject": "a-value"}, {}, body))["version"] == 1


def test_an_id_that_belongs_to_another_schema_is_refused(api: Api) -> None:
    api.register(post("a-value", schema("a"), id=1100))
    assert code(api.register, post("b-value", schema("b"), id=1100)) == 42205
    assert code(api.register, post("a-value", schema("a"), id=1101)) == 42205


def test_two_servers_that_propose_the_same_id_agree(log: MemoryLog) -> None:
    """The log refuses the second server's record; it tries the next id, and both say the same."""
    one, two = server(log), server(log)
    late = log.followers.pop()  # two's follower lags: it does not see what one writes
    first = one.register(post("a-value", schema("a")))
    proposed: list[bytes] = []

    def catch_up(value: bytes) -> None:
        proposed.append(value)
        for old in log.values if len(proposed) == 1 else log.values[-1:]:
            late(old)

    log.followers.append(catch_up)
    second = two.register(post("b-value", schema("b")))
    assert (first, second) == ({"id": FIRST_FREE_ID}, {"id": FIRST_FREE_ID + 1})
    assert len(proposed) == 2
    for api in (one, two, server(log)):
        assert json.loads(api.schema(Request({"id": str(FIRST_FREE_ID)}))["schema"])["name"] == "a"
        assert api.versions(Request({"subject": "b-value"})) == [1]


def test_records_of_others_in_the_log_do_no_harm(log: MemoryLog, api: Api) -> None:
    for value in (
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"do": "dance", "subject": "x"}',
        b'{"do":"register","subject":"x"}',
    ):
        log.append("x", value)
    assert api.register(post("a-value", schema("a"))) == {"id": FIRST_FREE_ID}


def test_while_kafka_is_away_reads_are_answered_and_writes_say_why(api: Api, log: MemoryLog) -> None:
    known = api.register(post("a-value", schema("a")))
    log.away = True
    assert api.register(post("a-value", schema("a"))) == known
    assert api.schema(Request({"id": str(known["id"])}))
    with pytest.raises(
        ApiError, match="nothing can be written now: Kafka does not answer; try again"
    ) as caught:
        api.register(post("b-value", schema("b")))
    assert caught.value.status == 503


def test_before_the_log_is_read_only_our_own_schemas_are_given(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a client would take for unknown what is only not read yet."""
    monkeypatch.setattr(_store, "FIRST_READ_TIMEOUT", 0.01)
    api = Api(Store(), log)
    assert api.schema(Request({"id": str(SIM_ALERT_ID)}))
    assert code(api.schema, Request({"id": "1100"})) == 50301
    assert code(api.register, post("a-value", schema("a"))) == 50301


def test_a_question_waits_for_the_first_reading_of_the_log(log: MemoryLog) -> None:
    """A client that asks a server which has just started gets its answer, not a refusal."""
    store = Store()
    api = Api(store, log)
    log.followers.append(store.take)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(api.register, post("a-value", schema("a")))
        assert not wait([answer], timeout=0.2).done
        store.end_of_log()
        assert answer.result(READ_BACK_TIMEOUT) == {"id": FIRST_FREE_ID}


def test_subjects_must_stay_readable_but_alerts_are_their_surveys(api: Api) -> None:
    """BACKWARD by default; NONE for alerts.*, whose surveys change as they like."""
    for subject in ("a-value", "alerts.ztf-value"):
        api.register(post(subject, schema("a", "x")))
    assert code(api.register, post("a-value", schema("a", "x", "y"))) == 409
    assert api.register(post("alerts.ztf-value", schema("a", "x", "y")))
    body = json.dumps({"compatibility": "none"}).encode()
    assert api.set_config(Request({"subject": "a-value"}, {}, body)) == {"compatibility": "NONE"}
    assert api.config(Request({"subject": "a-value"})) == {"compatibilityLevel": "NONE"}
    assert api.register(post("a-value", schema("a", "x", "y")))


def test_compatibility_can_be_asked_before(api: Api) -> None:
    api.register(post("a-value", schema("a", "x")))
    wider = post("a-value", schema("a", "x", "y"))
    latest = Request({"subject": "a-value", "version": "latest"}, {"verbose": "true"}, wider.body)
    assert api.compatible(wider) == {"is_compatible": False}
    assert api.compatible(latest)["messages"] == [
        "the new schema cannot read the old: y: it was not written, and has no default"
    ]
    assert api.compatible(post("new-value", schema("a"))) == {"is_compatible": True}


def test_what_is_deleted_is_gone_from_its_subject_and_still_there_by_id(api: Api) -> None:
    number = api.register(post("a-value", schema("a", "x")))["id"]
    assert api.delete(Request({"subject": "a-value"})) == [1]
    assert "a-value" not in api.subjects(Request())
    assert "a-value" in api.subjects(Request(query={"deleted": "true"}))
    assert code(api.versions, Request({"subject": "a-value"})) == 40401
    assert api.schema(Request({"id": str(number)}))
    assert api.schema_versions(Request({"id": str(number)})) == []
    assert api.register(post("a-value", schema("a", "x"))) == {"id": number}
    assert api.versions(Request({"subject": "a-value"})) == [2]


def test_what_is_deleted_for_good_is_still_there_by_id(api: Api) -> None:
    """Messages with its id may exist.  It must have been deleted before, as with Confluent."""
    number = api.register(post("a-value", schema("a", "x")))["id"]
    for_good = {"permanent": "true"}
    assert code(api.delete, Request({"subject": "a-value"}, for_good)) == 40405
    assert code(api.delete, Request({"subject": "a-value", "version": "1"}, for_good)) == 40407
    api.delete(Request({"subject": "a-value"}))
    assert api.delete(Request({"subject": "a-value"}, for_good)) == [1]
    assert "a-value" not in api.subjects(Request(query={"deleted": "true"}))
    assert code(api.delete, Request({"subject": "a-value"}, for_good)) == 40401
    assert api.schema(Request({"id": str(number)}))
    assert api.register(post("a-value", schema("a", "x"))) == {"id": number}
    assert api.versions(Request({"subject": "a-value"})) == [2]


def test_a_subject_may_be_read_only_and_import_is_accepted(api: Api) -> None:
    def mode(name: str) -> Request:
        return Request({"subject": "a-value"}, {}, json.dumps({"mode": name}).encode())

    assert code(api.mode, Request({"subject": "a-value"})) == 40409
    assert api.set_mode(mode("READONLY")) == {"mode": "READONLY"}
    assert code(api.register, post("a-value", schema("a"))) == 42205
    assert api.set_mode(mode("IMPORT")) == {"mode": "IMPORT"}
    assert api.register(post("a-value", schema("a"), id=1100)) == {"id": 1100}
    assert api.unset_mode(mode("")) == {"mode": "IMPORT"}
    assert api.mode(Request({"subject": "a-value"}, {"defaultToGlobal": "true"})) == {"mode": "READWRITE"}
    assert code(api.set_mode, mode("SOME")) == 42204


def test_a_schema_may_refer_to_another_and_is_kept_whole(api: Api) -> None:
    inner = {"type": "record", "name": "s.inner", "fields": [{"name": "x", "type": "int"}]}
    outer = {"type": "record", "name": "s.outer", "fields": [{"name": "in", "type": "s.inner"}]}
    api.register(post("inner", inner))
    refers = {"references": [{"name": "s.inner", "subject": "inner", "version": 1}]}
    number = api.register(post("outer", outer, **refers))["id"]
    whole = api.schema_text(Request({"id": str(number)}))
    assert whole == {**outer, "fields": [{"name": "in", "type": inner}]}
    assert api.look_up(post("outer", outer, **refers))["id"] == number
    refers["references"][0]["version"] = 7
    assert code(api.register, post("outer", outer, **refers)) == 40402


def test_a_level_can_be_taken_back(api: Api) -> None:
    subject = {"subject": "a-value"}
    api.set_config(Request(subject, {}, b'{"compatibility": "FULL"}'))
    assert api.config(Request(subject)) == {"compatibilityLevel": "FULL"}
    assert api.unset_config(Request(subject)) == {"compatibilityLevel": "FULL"}
    assert code(api.config, Request(subject)) == 40408


def test_one_version_can_be_deleted(api: Api) -> None:
    for fields in (["x"], ["x", "y"]):
        api.register(post("alerts.a-value", schema("a", *fields)))
    assert api.delete(Request({"subject": "alerts.a-value", "version": "latest"})) == 2
    assert api.versions(Request({"subject": "alerts.a-value"})) == [1]


@pytest.mark.parametrize(
    ("ask", "request_", "error"),
    [
        (Api.versions, Request({"subject": "none"}), 40401),
        (Api.version, Request({"subject": "none", "version": "1"}), 40401),
        (Api.version, Request({"subject": "visits-value", "version": "9"}), 40402),
        (Api.version, Request({"subject": "visits-value", "version": "x"}), 42202),
        (Api.version, Request({"subject": "visits-value", "version": "0"}), 42202),
        (Api.delete, Request({"subject": "none"}), 40401),
        (Api.delete, Request({"subject": "visits-value", "version": "7"}), 40402),
        (Api.schema, Request({"id": "12"}), 40403),
        (Api.schema, Request({"id": "x"}), 40403),
        (Api.look_up, post("none", schema("a")), 40401),
        (Api.look_up, post("visits-value", schema("a")), 40403),
        (Api.register, Request({"subject": "a"}, {}, b"{"), 42201),
        (Api.register, Request({"subject": "a"}, {}, b"[]"), 42201),
        (Api.register, Request({"subject": "a"}, {}, b"{}"), 42201),
        (Api.register, post("a", {"type": "nonsense"}), 42201),
        (Api.register, post("a", schema("a"), schemaType="JSON"), 42201),
        (Api.register, post("a", schema("a"), references=[{"name": "b"}]), 42201),
        (Api.register, post("a", schema("a"), id=1 << 31), 42206),
        (Api.register, post("a", schema("a"), id="x"), 42206),
        (Api.config, Request({"subject": "a"}), 40408),
        (Api.set_config, Request({}, {}, b'{"compatibility": "SOME"}'), 42203),
        (Api.no_associations, Request(), 404),
    ],
)
def test_errors_have_confluents_codes(
    api: Api, ask: Callable[..., Any], request_: Request, error: int
) -> None:
    assert code(lambda request: ask(api, request), request_) == error


def test_the_rest_of_the_interface(api: Api) -> None:
    number = str(SIM_ALERT_ID)
    assert api.version(Request({"subject": "alerts.sim-value", "version": "latest"}))["id"] == SIM_ALERT_ID
    assert api.version_schema(Request({"subject": "alerts.sim-value", "version": "1"})) == sim_alert_schema()
    assert api.schema_text(Request({"id": number})) == sim_alert_schema()
    assert api.schema_versions(Request({"id": number})) == [{"subject": "alerts.sim-value", "version": 1}]
    assert api.schema_subjects(Request({"id": number})) == ["alerts.sim-value"]
    assert (api.types(Request()), api.mode(Request())) == (["AVRO"], {"mode": "READWRITE"})
    assert api.config(Request()) == {"compatibilityLevel": "BACKWARD"}
    assert api.subjects(Request(query={"subjectPrefix": "alerts."})) == ["alerts.sim-value"]


def test_the_log_is_a_fold(log: MemoryLog, api: Api) -> None:
    """Whoever reads the same records knows the same, however often a record was written."""
    api.register(post("a-value", schema("a")))
    api.delete(Request({"subject": "a-value"}))
    api.register(post("b-value", schema("b"), id=5))
    subjects = Subjects()
    outcomes = [subjects.apply(json.loads(value)) for value in log.values]
    assert [type(outcome) for outcome in outcomes] == [Version, list, Version]
    again = subjects.apply(json.loads(log.values[2]))
    assert again == outcomes[2]
    assert isinstance(subjects.apply(json.loads(log.values[1])), Rejected)


def test_a_record_that_does_not_come_back_has_the_log_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store, "READ_BACK_TIMEOUT", 0.01)
    log = MemoryLog()
    store = Store()
    store.end_of_log()
    with pytest.raises(UnavailableError, match="does not come back"):
        store.register(log, "a-value", json.dumps(schema("A", "x")), None)
    assert (len(log.values), log.renewed) == (1, 1)
    log.followers.append(store.take)
    assert isinstance(store.register(log, "a-value", json.dumps(schema("A", "x")), None), Version)
    assert log.renewed == 1


def test_a_server_that_has_just_started_answers_an_id_once_its_log_is_read() -> None:
    log = MemoryLog()
    number = server(log).register(post("a-value", schema("a", "x")))["id"]
    store = Store()
    store.restart()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(Api(store, log).schema, Request({"id": str(number)}))
        assert not wait([answer], 0.2).done
        for value in log.values:
            store.take(value)
        store.end_of_log()
        assert json.loads(answer.result(10)["schema"]) == schema("a", "x")


def test_whose_schemas_these_are_is_told_as_confluent_tells_it() -> None:
    log = MemoryLog()
    assert code(server(log).identity, Request()) == 50301
    known = Api(Store(), log, lambda: "JIf1-lxlnAvT-WouSMjb6A").identity(Request())
    assert known["scope"]["clusters"]["kafka-cluster"] == "JIf1-lxlnAvT-WouSMjb6A"
