"""Table 1 of Swinbank (2014): what each step costs for one event, ours and Comet's."""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from pysequoia import SignatureMode, Tsk, sign

from nightwire.benchmarks import Context, Experiment, Figures, Kind
from nightwire.benchmarks.environment.vtp_brokers import TMPFS, debian_python
from nightwire.benchmarks.workers.vtp.packets import Packets
from nightwire.gateway import author_packet, element_bytes, encode_frame
from nightwire.gateway.eventlog import EventIndex, IndexEntry
from nightwire.gateway.signing import Finding, Keyring, bundle, bundled_signatures, check_signature
from nightwire.gateway.voevent import compile_schemas, parse_xml, schema_complaint
from nightwire.gateway.xpath import compile_filter

EXPRESSIONS = (
    '//Who/Author[shortName="VO-GCN"]',
    '//How[contains(Description, "Swift")]',
    '//Param[@name="Sun_Distance" and @value>40]',
    '//How[contains(Description, "Swift")] or '
    '(//Param[@name="Sun_Distance" and @value>40] and //Who/Author[shortName="VO-GCN"])',
)
"""The paper's four, of its section 4.1."""
BATCH = 500
"""Events that the index notes at once, as the follower does."""
FORKS = 20
"""Signatures that GnuPG checks in a run, each in a process of its own."""
COMET_TABLE = Path(__file__).with_name("comet_table.py")
"""Runs under Debian's Python; it imports Comet."""
STEPS = ("check", "parse", "validate", "hash", "dedup", *(f"xpath_{n}" for n in (1, 2, 3, 4)), "signature")

T = TypeVar("T")


def timed(work: Callable[[T], object], things: Sequence[T]) -> float:
    """Return how long *work* takes for each of *things*. [µs]"""
    began = time.perf_counter()
    for one in things:
        work(one)
    return (time.perf_counter() - began) / len(things) * 1e6


class Table(Experiment):
    """The steps that an event takes through a broker, each by itself, in one thread."""

    name = "table"

    def __init__(self, context: Context, packets: Packets, events: int) -> None:
        self._context, self._packets, self._events = context, packets, events
        self._runs = count()
        self._key = Tsk.generate(user_id="ivo://bench/author")

    def prepare(self) -> None:
        """Compile schemas; sign what GnuPG is to check."""
        compile_schemas()
        documents = self._packets.fresh(FORKS, "signed")
        self._signed = [bundle(document, self._armor(document)) for document in documents]

    def run_once(self, kind: Kind) -> Figures:
        """Measure every step."""
        documents = self._packets.fresh(self._events, f"table{next(self._runs)}")
        found = self._ours(documents) if kind is Kind.SUBJECT else self._comets(documents)
        return {f"table_{step}_us": found[step] for step in STEPS if step in found}

    def _ours(self, documents: list[bytes]) -> dict[str, float]:
        keyring = Keyring([self._key.extract_certificate()])
        now = datetime.now(UTC)

        def verify(document: bytes) -> None:
            (one,) = bundled_signatures(document)
            if (
                check_signature(one.signed, one.armor, keyring, now, timedelta(days=30)).finding
                != Finding.GOOD
            ):
                raise AssertionError("a good signature is not taken for one")

        roots = [parse_xml(document) for document in documents]
        found = {
            "check": timed(author_packet, documents),
            "parse": timed(parse_xml, documents),
            "validate": timed(schema_complaint, roots),
            "hash": timed(element_bytes, documents),
            "dedup": self._dedup([author_packet(document).hash for document in documents]),
            "signature": timed(verify, self._signed * 10),
        }
        for number, text in enumerate(EXPRESSIONS, 1):
            found[f"xpath_{number}"] = timed(compile_filter(text).matches, roots)
        return found

    def _dedup(self, hashes: list[bytes]) -> float:
        """Return what it costs to ask for a hash and to note it, on disk. [µs]"""
        with TemporaryDirectory(dir=self._context.folder) as folder:
            index = EventIndex(Path(folder) / "events")
            began = time.perf_counter()
            for start in range(0, len(hashes), BATCH):
                batch = hashes[start : start + BATCH]
                if any(index.knows(one) for one in batch):
                    raise AssertionError("a new event is taken for a known one")
                index.add([IndexEntry(one, 0, start + n) for n, one in enumerate(batch)], {0: start})
            taken = time.perf_counter() - began
            index.close()
        return taken / len(hashes) * 1e6

    def _comets(self, documents: list[bytes]) -> dict[str, float]:
        packets = self._context.folder / "packets"
        packets.write_bytes(b"".join(map(encode_frame, documents)))
        with TemporaryDirectory(prefix="nightwire-comet-", dir=TMPFS) as folder:
            command = [*debian_python(), str(COMET_TABLE), str(packets), folder, json.dumps(EXPRESSIONS)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        found: dict[str, float] = json.loads(done.stdout)
        found["check"] = found["parse"] + found["validate"] + found["hash"]
        if shutil.which("gpg"):
            found["signature"] = self._gnupg()
        return found

    def _gnupg(self) -> float:
        """Return what a check by GnuPG takes, as Comet's code for signatures makes it. [µs]"""
        with TemporaryDirectory(prefix="gpg-", dir=TMPFS) as folder:
            options = "--batch --quiet --no-autostart --trust-model always"
            gpg = ["gpg", "--homedir", folder, *options.split()]
            key = bytes(self._key.extract_certificate())
            subprocess.run([*gpg, "--import"], input=key, capture_output=True, check=True)
            files = []
            for number, document in enumerate(self._signed):
                (one,) = bundled_signatures(document)
                files.append([str(Path(folder) / f"{number}.asc"), str(Path(folder) / f"{number}.xml")])
                Path(files[-1][0]).write_bytes(one.armor)
                Path(files[-1][1]).write_bytes(one.signed)
            return timed(
                lambda two: subprocess.run([*gpg, "--verify", *two], capture_output=True, check=True), files
            )

    def _armor(self, document: bytes) -> bytes:
        return sign(self._key.signer(), element_bytes(document), mode=SignatureMode.DETACHED)
