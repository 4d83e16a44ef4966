"""The source, broken on purpose where bytes are made or read: ``python -m native.tests.mutants``.

Each mutant is built and must be killed by the tests of literal and malformed bytes.  That takes
some minutes, so ``make test`` only checks that the list still fits the source.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from native.tests.sources import NATIVE
from nightwire.schemas.avro.native_engine import SOURCES

TESTS = [
    "test_literal.py",
    "test_malformed.py",
    "test_chosen_fields.py",
    "test_encode_validation.py",
    "test_voevent.py",
]


class Mutant(NamedTuple):
    """A change of one place in the source."""

    name: str
    file: str
    old: str
    new: str


MUTANTS = [
    Mutant(
        "float in big-endian order",
        "output.rs",
        "(value as f32).to_le_bytes()",
        "(value as f32).to_be_bytes()",
    ),
    Mutant("double in big-endian order", "output.rs", "&value.to_le_bytes()", "&value.to_be_bytes()"),
    Mutant("float read big-endian", "cursor.rs", "f32::from_le_bytes", "f32::from_be_bytes"),
    Mutant("double read big-endian", "cursor.rs", "f64::from_le_bytes", "f64::from_be_bytes"),
    Mutant("the other size of a nullable", "decode/skip.rs", "sizes[cursor", "sizes[1 - cursor"),
    Mutant("no zigzag", "output.rs", "((value << 1) ^ (value >> 63)) as u64", "value as u64"),
    Mutant("no zigzag back", "cursor.rs", "(bits >> 1) as i64 ^ -((bits & 1) as i64)", "bits as i64"),
    Mutant("varints of eight bits", "output.rs", "while bits >= 0x80", "while bits > 0x80"),
    Mutant("varints of 70 bits", "cursor.rs", "if place == 9 && byte > 1", "if place == 10 && byte > 1"),
    Mutant("any boolean", "cursor.rs", "[1] => Ok(true)", "[_] => Ok(true)"),
    Mutant(
        "ints of 64 bits", "cursor.rs", "i32::try_from(value).map_err(|_|", "Ok(value as i32).map_err(|_: ()|"
    ),
    Mutant(
        "the other branch of null",
        "encode/mod.rs",
        "out.put_long(null.into());",
        "out.put_long((1 - null).into());",
    ),
    Mutant(
        "the other branch of the value",
        "encode/mod.rs",
        "out.put_long((1 - null).into());",
        "out.put_long(null.into());",
    ),
    Mutant(
        "a branch without bound", "cursor.rs", "Ok(index) if index < count", "Ok(index) if index <= count"
    ),
    Mutant(
        "a float where a double could be",
        "encode/choose.rs",
        ".unwrap_or(index)",
        ".min(Some(index)).unwrap_or(index)",
    ),
    Mutant(
        "records by their fewest fields",
        "encode/choose.rs",
        "if count > most_fields",
        "if most_fields.is_none()",
    ),
    Mutant("no default", "encode/compounds.rs", "default.bind(py), lenient", "py.None().bind(py), lenient"),
    Mutant(
        "unknown fields let pass",
        "encode/compounds.rs",
        "known == record.len() ||",
        "known <= record.len() ||",
    ),
    Mutant("-type is a field", "encode/compounds.rs", "&& !names_it(&key, &value)", ""),
    Mutant(
        "an array without its end",
        "encode/compounds.rs",
        ".in_item(at)?;\n        }\n        out.put_long(0);",
        ".in_item(at)?;\n        }",
    ),
    Mutant(
        "a map without its end",
        "encode/compounds.rs",
        ".in_item(name)?;\n        }\n        out.put_long(0);",
        ".in_item(name)?;\n        }",
    ),
    Mutant(
        "no size behind a negative count",
        "cursor.rs",
        "if count < 0 { Some(self.long()?) } else { None }",
        "if count < -99 { Some(self.long()?) } else { None }",
    ),
    Mutant(
        "blocks of any size",
        "cursor.rs",
        "Some(end) if end != cursor.at",
        "Some(end) if end < cursor.at && end > cursor.at",
    ),
    Mutant("blocks are not jumped over", "cursor.rs", "cursor.at = end;", "cursor.at = end + 1;"),
    Mutant("any count", "cursor.rs", "return items <= room;", "return items <= room + 1;"),
    Mutant("any number of nulls", "cursor.rs", "self.empty_items_left -= if fits { items } else { 0 };", ""),
    Mutant("any depth", "cursor.rs", "if self.depth > MAX_DEPTH", "if self.depth > MAX_DEPTH + 1"),
    Mutant(
        "any depth written", "encode/mod.rs", "if self.depth == MAX_DEPTH", "if self.depth == MAX_DEPTH + 1"
    ),
    Mutant(
        "the end is not looked at",
        "decode/plan.rs",
        "if self.partial || cursor.left() == 0",
        "if self.partial || cursor.left() < 2",
    ),
    Mutant("reading stops nowhere", "decode/plan.rs", "if self.partial ||", "if"),
    Mutant(
        "text of any bytes",
        "cursor.rs",
        "std::str::from_utf8(bytes)",
        "std::str::from_utf8(bytes.get(..0).unwrap_or(bytes))",
    ),
    Mutant(
        "views of what was read before",
        "decode/mod.rs",
        "body.view(self.cursor.at - bytes.len()..self.cursor.at)?",
        "body.view(0..bytes.len())?",
    ),
    Mutant(
        "a view's start is forgotten",
        "buffer.rs",
        "(self.range.start + part.start) as isize",
        "part.start as isize",
    ),
    Mutant(
        "defaults are shared",
        "decode/reader.rs",
        "if is_mutable(constant) {",
        "if false && is_mutable(constant) {",
    ),
    Mutant("scaled the other way", "decode/mod.rs", "number * factor + offset", "(number + offset) * factor"),
    Mutant(
        "columns scaled the other way",
        "columns/fill.rs",
        "Some(real) => self.append(Scalar::Real(real * factor + offset), into)",
        "Some(real) => self.append(Scalar::Real((real + offset) * factor), into)",
    ),
    Mutant(
        "a list ends one early",
        "columns/builder.rs",
        "let items = self.len(self.builders[at].inside);",
        "let items = self.len(self.builders[at].inside).saturating_sub(1);",
    ),
    Mutant(
        "nulls inside a struct are forgotten",
        "columns/builder.rs",
        "inside.for_each(|child| self.append_null(child));",
        "drop(inside);",
    ),
    Mutant(
        "a decimal without sign", "columns/scalar.rs", "first & 0x80 != 0) { -1 }", "first & 0x80 != 0) { 0 }"
    ),
    Mutant(
        "times in another unit",
        "columns/compile.rs",
        "TimeUnit::Millisecond { 1_000 }",
        "TimeUnit::Millisecond { 1_000_000 }",
    ),
    Mutant("an element may end anywhere", "voevent/tables.rs", ".copied().unwrap_or(false)", ".is_some()"),
    Mutant("a child leads nowhere", "voevent/validate.rs", "above.state = state;", "let _ = state;"),
    Mutant("attributes are never missing", "voevent/validate.rs", "if required > 0 {", "if required > 99 {"),
    Mutant("values are free", "voevent/validate.rs", "if !fits.ok_or(Misfit::Unsure)? {", "if false {"),
    Mutant("text anywhere", "voevent/validate.rs", "if !is_blank(&value()) =>", "if false =>"),
    Mutant(
        "any end tag",
        "voevent/check.rs",
        "if open.of(document) == name.of(document) =>",
        "if true || open == &name =>",
    ),
    Mutant("65 levels", "voevent/check.rs", "const MAX_DEPTH: usize = 64", "const MAX_DEPTH: usize = 65"),
    Mutant("prefixes outlive their element", "voevent/scopes.rs", "*since >= depth", "*since > depth + 1"),
    Mutant("attributes of one name", "voevent/scopes.rs", "if alike && self", "if false && alike && self"),
    Mutant("dashes in comments", "voevent/scan.rs", 'self.until(b"--", ', 'self.until(b"-->", '),
    Mutant("any character", "voevent/characters.rs", "other => other >= ' ',", "_ => true,"),
    Mutant("leap centuries", "voevent/simple.rs", "(year % 100 != 0 || year % 400 == 0)", "true"),
    Mutant("numbers without digits", "voevent/simple.rs", "Some(!empty && ", "Some("),
    Mutant("two fragments", "voevent/simple.rs", ".count() > 1 {", ".count() > 9 {"),
    Mutant(
        "spaces in values are kept", "voevent/references.rs", "expand(text, b' ')", "expand(text, b'\\n')"
    ),
    Mutant("text behind comments", "voevent/facts.rs", "*byte == b'<'", "*byte == 0"),
]


def patched(mutant: Mutant, source: str) -> str:
    """Return the *source* with the mutant.  Raises ValueError where it does not fit just once."""
    if source.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {mutant.file} has {source.count(mutant.old)} times {mutant.old!r}")
    return source.replace(mutant.old, mutant.new)


def build(crate: Path, library: Path) -> None:
    """Build the *crate*, quickly rather than well, and lay the module into the folder *library*."""
    target = NATIVE / "target" / "mutants"
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target), "PYO3_BUILD_EXTENSION_MODULE": "1"}
    environment["PYO3_PYTHON"] = sys.executable
    environment["NIGHTWIRE_NATIVE_SOURCES"] = SOURCES  # or Python would not take a mutant
    command = ["cargo", "build", "--quiet", "--profile", "mutant"]
    subprocess.run(command, cwd=crate, env=environment, check=True, stderr=subprocess.PIPE)
    shutil.copy(target / "mutant" / "libnightwire_native.so", library / "nightwire_native.abi3.so")


def survives(library: Path) -> bool:
    """Whether the tests pass with the module in *library*."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    tests = [str(NATIVE / "tests" / name) for name in TESTS]
    environment = {**os.environ, "PYTHONPATH": str(library)}
    done = subprocess.run(
        [*command, *tests], cwd=NATIVE.parent, env=environment, capture_output=True, timeout=300, check=False
    )
    return done.returncode == 0


def hunt(mutants: list[Mutant]) -> Iterator[tuple[Mutant | None, bool]]:
    """Yield whether the source as it is, and then each mutant, survives."""
    with tempfile.TemporaryDirectory() as folder:
        crate, library = Path(folder, "native"), Path(folder, "library")
        library.mkdir()
        # as new, for cargo
        shutil.copytree(NATIVE / "src", crate / "src", copy_function=shutil.copyfile)
        shutil.copyfile(NATIVE / "Cargo.toml", crate / "Cargo.toml")
        build(crate, library)
        yield None, survives(library)
        for mutant in mutants:
            file = crate / "src" / mutant.file
            source = file.read_text()
            file.write_text(patched(mutant, source))
            build(crate, library)
            yield mutant, survives(library)
            file.write_text(source)


def main(wanted: list[str]) -> int:
    """Hunt the mutants whose names hold one of *wanted*, or all; return how many survive."""
    chosen = [mutant for mutant in MUTANTS if not wanted or any(word in mutant.name for word in wanted)]
    failures = 0
    for mutant, alive in hunt(chosen):
        wrong = alive if mutant else not alive
        failures += wrong
        verdict = "survives" if alive else "killed"
        print(f"{verdict:9} {mutant.name if mutant else 'the source as it is'}", flush=True)  # noqa: T201
    return min(failures, 100)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
