"""The hash of the native sources: ``python -m native.tests.sources`` prints it.

A change of the sources goes with `SOURCES` in ``nightwire.schemas.avro.native_engine``, so that a
build of other sources is not taken for one of these.
"""

import sys
from pathlib import Path

NATIVE = Path(__file__).parent.parent


def source_hash(native: Path) -> str:
    """Return FNV-1a (64 bits) of the crate's ``Cargo.toml`` and ``src``, as ``build.rs`` does."""
    files = [native / "Cargo.toml", *(path for path in (native / "src").rglob("*") if path.is_file())]
    names = {path.relative_to(native).as_posix(): path for path in files}
    found = 0xCBF29CE484222325
    for name in sorted(names, key=lambda name: name.split("/")):
        for byte in b"%s\0%s\0" % (name.encode(), names[name].read_bytes()):
            found = (found ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{found:016x}"


if __name__ == "__main__":
    sys.stdout.write(f"{source_hash(NATIVE)}\n")
