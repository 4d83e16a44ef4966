"""`nightwire subscribe` and `nightwire topics`, as people run them."""

import io
import json
import logging
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from pyarrow import csv, parquet

from nightwire.consumers.cli.options import OutputOptions
from nightwire.consumers.cli.topics import topics
from nightwire.core.cli import main
from nightwire.schemas import SchemaRegistry, survey
from nightwire.schemas.wire import frame, read_container

pytestmark = pytest.mark.kafka

Encode = Callable[..., bytes]
Write = Callable[..., None]
Topic = Callable[..., str]


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Take back what a verb does to the root logger."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def run(kafka: str) -> Callable[..., Result]:
    """Return a function that runs `nightwire subscribe` to the present end."""

    def call(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["subscribe", *arguments, "--bootstrap", kafka, "--no-follow"])

    return call


@pytest.fixture
def three(kafka: str, fresh_topic: Topic, encode: Encode, write: Write) -> str:
    """Return a topic with alerts 1 to 3."""
    topic = fresh_topic()
    write(kafka, topic, [encode(number) for number in (1, 2, 3)])
    return topic


def test_a_table_has_a_row_an_alert_and_a_count(run: Callable[..., Result], three: str) -> None:
    result = run(three)
    rows = result.stdout.splitlines()
    assert result.exit_code == 0
    assert rows[0].split() == ["id", "object", "time", "(UTC)", "ra", "dec", "band", "mag", "S/N"]
    assert rows[2].split() == [
        "2",
        "1002",
        "2025-11-20",
        "23:59:23",
        "10.50000",
        "-20.25000",
        "r",
        "22.50",
        "10.0",
    ]
    assert result.stderr.startswith(f"3 alerts from {three} in ")


def test_json_lines_go_to_a_file(run: Callable[..., Result], three: str, tmp_path: Path) -> None:
    result = run(three, "--format", "json", "--last", "2", "--out", str(tmp_path / "night.json"))
    lines = (tmp_path / "night.json").read_text().splitlines()
    assert result.stdout == ""
    assert [json.loads(line)["alert"]["diaSourceId"] for line in lines] == [2, 3]


def test_avro_goes_to_standard_output(run: Callable[..., Result], three: str) -> None:
    result = run(three, "--format", "avro", "--limit", "2")
    assert [alert["diaSourceId"] for alert in fastavro.reader(io.BytesIO(result.stdout_bytes))] == [1, 2]


FIELDS = ("--fields", "diaSourceId, diaSource.band,prvDiaSources.ra,cutoutScience", "--metadata", "offset")


def test_chosen_fields_go_to_json_lines_and_csv(run: Callable[..., Result], three: str) -> None:
    rows = [json.loads(line) for line in run(three, *FIELDS, "--format", "json").stdout.splitlines()]
    assert rows[2] == {"offset": 2, "diaSourceId": 3, "diaSource.band": "r", "prvDiaSources.ra": None}
    lines = run(three, *FIELDS[:1], "diaSourceId,diaSource.band", *FIELDS[2:], "--format", "csv").stdout
    assert lines.splitlines()[:2] == ['"offset","diaSourceId","diaSource.band"', '0,1,"r"']


@pytest.mark.parametrize("form", ["arrow", "parquet", "csv"])
def test_chosen_fields_go_to_files(run: Callable[..., Result], three: str, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"night.{form}"
    result = run(three, *FIELDS, "--format", form, "--out", str(path))
    assert result.stderr.startswith(f"3 alerts from {three} in "), result.output
    read = {
        "arrow": lambda: pa.ipc.open_stream(path).read_all(),
        "parquet": lambda: parquet.read_table(path),
        "csv": lambda: csv.read_csv(path),
    }
    table = read[form]()
    assert table["diaSourceId"].to_pylist() == [1, 2, 3]
    assert table.column_names == [
        "offset",
        "diaSourceId",
        "diaSource.band",
        "prvDiaSources.ra",
        "cutoutScience",
    ]


def test_a_container_is_avro(run: Callable[..., Result], three: str) -> None:
    result = run(three, "--format", "container", "--limit", "1")
    assert [alert["diaSourceId"] for alert in fastavro.reader(io.BytesIO(result.stdout_bytes))] == [1]


def test_duplicates_are_left_out_and_counted(
    run: Callable[..., Result], kafka: str, three: str, encode: Encode, write: Write
) -> None:
    write(kafka, three, [encode(3)])
    assert run(three, "--dedup", "alert").stderr.endswith("; 1 duplicates left out\n")


def test_a_group_goes_on(run: Callable[..., Result], three: str) -> None:
    assert run(three, "--group", f"{three}.g", "--limit", "2").stderr.startswith("2 alerts from")
    assert run(three, "--group", f"{three}.g").stderr.startswith("1 alert from")


def test_stamps_are_saved_as_fits_and_png(run: Callable[..., Result], three: str, tmp_path: Path) -> None:
    result = run(three, "--stamps", str(tmp_path / "stamps"))
    names = sorted(path.name for path in (tmp_path / "stamps").iterdir())
    assert names == [f"{number}_science.{kind}" for number in (1, 2, 3) for kind in ("fits", "png")]
    assert "; 3 stamps saved" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 1, "no topic nowhere; there are: "),
        (["t", "--since", "10"], 2, "'10' has no unit: write 10s, 10m, 10h or 10d"),
        (["t", "--since", "1h", "--last", "3"], 2, "since and last exclude each other"),
        (["t", "--group", "g", "--last", "3"], 2, "last reads without a group"),
        (["t", "--member", "m"], 2, "member='m' is a member of a group"),
        (["t", "--format", "csv"], 2, "--format csv wants --fields"),
        (["t", "--fields", "a", "--format", "table"], 2, "--format table goes without --fields"),
        (["t", "--fields", "a", "--format", "parquet"], 2, "--format parquet wants --out"),
        (["t", "--fields", "a,a", "--format", "csv"], 2, "a is asked for twice"),
        (["t", "--metadata", "offset"], 2, "--metadata goes with --fields"),
        ([], 2, "Missing argument 'TOPIC...'"),
        (["t", "--where", "magnitude <"], 2, "where: line 1, column 12: "),
    ],
)
def test_wrong_use_says_what_is_wrong(
    run: Callable[..., Result], arguments: list[str], code: int, words: str
) -> None:
    result = run(*arguments)
    assert (result.exit_code, words in result.output) == (code, True)


@pytest.mark.parametrize("option", ["--out", "--stamps"])
def test_a_place_that_cannot_be_written_is_named(
    run: Callable[..., Result], three: str, tmp_path: Path, option: str
) -> None:
    (tmp_path / "file").touch()
    result = run(three, option, str(tmp_path / "file" / "in"))
    assert (result.exit_code, result.stderr) == (1, f"Error: {tmp_path}/file/in: Not a directory\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_a_count(kafka: str, three: str, number: signal.Signals) -> None:
    command = [
        sys.executable,
        "-m",
        "nightwire.core.cli",
        "subscribe",
        three,
        "--last",
        "2",
        "--bootstrap",
        kafka,
    ]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    for _ in range(3):  # the header and two rows: it is up
        assert child.stdout.readline()
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert (child.returncode, said.startswith(f"2 alerts from {three} in ")) == (0, True), said


def test_topics_are_listed_with_records_and_times(
    kafka: str, fresh_topic: Topic, encode: Encode, write: Write
) -> None:
    topic = fresh_topic(partitions=2)
    empty = fresh_topic()
    write(kafka, topic, [encode(1)], timestamp_ms=1_795_230_000_000, partition=0)
    write(kafka, topic, [encode(2)], timestamp_ms=1_795_230_001_500, partition=1)
    result = CliRunner().invoke(topics, ["--json", "--bootstrap", kafka])
    rows = {row.pop("topic"): row for row in json.loads(result.stdout)}
    oldest, newest = "2026-11-21T03:00:00.000Z", "2026-11-21T03:00:01.500Z"
    assert rows[topic] == {"partitions": 2, "records": 2, "oldest": oldest, "newest": newest}
    assert rows[empty] == {"partitions": 1, "records": 0, "oldest": None, "newest": None}
    assert not [name for name in rows if name.startswith("__")]
    table = CliRunner().invoke(topics, ["--bootstrap", kafka]).stdout
    assert f"{topic}" in table


@pytest.mark.data
def test_real_alerts_keep_their_bodies_and_give_their_stamps(
    kafka: str,
    registry_url: str,
    fresh_topic: Topic,
    write: Write,
    data: Path,
    run: Callable[..., Result],
    tmp_path: Path,
) -> None:
    rubin = list(read_container((data / "alerts/lsst/rubin_real_v11_0.avro").read_bytes()))
    with SchemaRegistry(registry_url, cache_dir=tmp_path / "cache") as registry:
        registry.register("alerts.lsst-value", rubin[0].schema, schema_id=1100)
    ztf = [value for _, value in ztf_values(data)]
    topic = fresh_topic()
    write(kafka, topic, [frame(1100, one.body) for one in rubin], headers=[("survey", b"lsst")])
    write(kafka, topic, ztf, headers=[("survey", b"ztf")])
    out, stamps = tmp_path / "night.avro", tmp_path / "stamps"
    result = run(
        *(topic, "--registry", registry_url, "--format", "avro", "--out", str(out), "--stamps", str(stamps))
    )
    assert result.exit_code == 0, result.output
    written = [one for path in sorted(tmp_path.glob("*.avro")) for one in read_container(path.read_bytes())]
    expected = [one.body for one in rubin] + [next(read_container(value)).body for value in ztf]
    assert sorted(one.body for one in written) == sorted(expected)
    assert {path.name for path in stamps.iterdir()} >= {
        f"{survey('lsst').alert_id(one.record)}_{name}.{kind}"
        for one in rubin
        for name in ("difference", "science", "template")
        for kind in ("fits", "png")
    }
    assert "broken" not in result.stderr


def ztf_values(data: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the ZTF containers of one alert that lie there unpacked."""
    for path in sorted((data / "alerts" / "ztf").rglob("*.avro")):
        value = path.read_bytes()
        if len(list(read_container(value))) == 1:
            yield path.name, value


@pytest.mark.parametrize(
    ("name", "options", "begins"),
    [
        ("x.json", (), b'{"id"'),
        ("x.AVRO", (), b"Obj\x01"),
        ("x.csv", ("--fields", "diaSource.ra"), b'"diaSource.ra"'),
        ("x.parquet", ("--fields", "diaSource.ra"), b"PAR1"),
        ("x.jsonl", ("--fields", "diaSource.ra"), b'{"diaSource.ra"'),
        ("x.txt", (), b"id "),
        ("x.json", ("--format", "table"), b"id "),
    ],
)
def test_the_format_is_that_of_the_files_ending(
    run: Callable[..., Result], three: str, tmp_path: Path, name: str, options: tuple[str, ...], begins: bytes
) -> None:
    found = run(three, "--last", "3", "--out", str(tmp_path / name), *options)
    assert found.exit_code == 0, found.output
    assert (tmp_path / name).read_bytes().startswith(begins)


def test_a_quiet_topic_is_waited_for_and_the_way_to_its_past_told(kafka: str, fresh_topic: Topic) -> None:
    topic = fresh_topic()
    words = ("subscribe", topic, "--bootstrap", kafka)
    child = subprocess.Popen(
        [sys.executable, "-m", "nightwire.core.cli", *words], stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    said = child.stderr.readline()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert said.startswith(f"waiting for alerts in {topic}; --since 1h shows those of the last hour")


def test_bytes_are_not_written_to_a_terminal() -> None:
    options = OutputOptions("avro", False, (), (), None, None)
    (fault,) = options.faults(group=None, terminal=True)
    assert fault.startswith("--format avro is not for a terminal")
    assert options.faults(group=None, terminal=False) == []
    assert replace(options, out=Path("x")).faults(group=None, terminal=True) == []


def test_a_condition_beside_a_topic_is_on_its_alerts(run: Callable[..., Result], three: str) -> None:
    result = run(three, "--where", "diaSourceId >= 2", "--format", "json", "--quiet-subscription")
    assert [json.loads(line)["alert"]["diaSourceId"] for line in result.stdout.splitlines()] == [2, 3]
    assert result.stderr.startswith(f"2 alerts from {three} where diaSourceId >= 2 in ")
    assert result.stderr.endswith("; 1 left out by the condition\n")
