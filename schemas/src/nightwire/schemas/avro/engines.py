"""The codec's engines: what executes layouts and plans.

``native`` is compiled (`native/`, built by `make native`); ``python`` is generated from the schema and
always there.  Both do the same, byte for byte.
"""

import importlib.util
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from nightwire.schemas.avro import generated_engine as _generated
from nightwire.schemas.avro.plans.program import Program
from nightwire.schemas.errors import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

Encode = Callable[[Any], bytes]
Decode = Callable[[Any], Any]
Batch = Callable[[Sequence[Any]], "pa.RecordBatch"]


class Engine(Protocol):
    """What makes encoders and decoders.  *name* is the schema's, for messages."""

    def encoder(self, name: str, layout: Program, parsed: Any) -> Encode:
        """Return what makes the body of a value.  It raises EncodeError."""

    def decoder(self, name: str, plan: Program, *, views: bool = False) -> Decode:
        """Return what makes the value of a body; bytes as *views* into it.  It raises DecodeError."""

    def batcher(self, name: str, plan: Program, paths: Sequence[Sequence[str]], schema: Any) -> Batch:
        """Return what makes one row of each body, with a column for each of *paths*.

        It raises DecodeError, which names the message.
        """


class Native:
    """The compiled engine."""

    def encoder(self, name: str, layout: Program, parsed: Any) -> Encode:
        from nightwire.schemas.avro import native_engine as _native

        return _native.encoder(name, layout.document, layout.constants, layout.converters)

    def decoder(self, name: str, plan: Program, *, views: bool = False) -> Decode:
        from nightwire.schemas.avro import native_engine as _native

        return _native.decoder(name, plan.document, plan.constants, plan.converters, views=views)

    def batcher(self, name: str, plan: Program, paths: Sequence[Sequence[str]], schema: Any) -> Batch:
        from nightwire.schemas.avro import native_engine as _native

        return _native.batcher(name, plan.document, paths, plan.constants, schema)


def engine(wanted: str | None = None) -> tuple[str, Engine]:
    """Return the engine that is *wanted*, or where none is, the best there is; with its name.

    The environment's ``NIGHTWIRE_CODEC`` decides where the caller does not.

    Raises:
        SchemaError: There is none of that name, or it is not built.
    """
    wanted = wanted or os.environ.get("NIGHTWIRE_CODEC") or best_engine()
    if wanted not in ENGINES:
        raise SchemaError(f"no codec engine {wanted!r}; there are: {', '.join(ENGINES)}")
    if wanted == "native" and not native_available():
        raise SchemaError("the native codec is not built; `make native` builds it (Rust's cargo is needed)")
    return wanted, ENGINES[wanted]


@cache
def best_engine() -> str:
    """Return the name of the fastest engine that is here; says once where that is the slower one."""
    if native_available():
        return "native"
    log.warning("the native codec is not built, Python does its work more slowly; `make native` builds it")
    return "python"


def engines() -> tuple[str, ...]:
    """Return the names of the engines that can be used here, the fastest first."""
    return ("native", "python") if native_available() else ("python",)


@cache
def native_available() -> bool:
    """Whether the compiled engine can be used."""
    if importlib.util.find_spec("nightwire.schemas.avro.native_engine") is None:
        return False
    from nightwire.schemas.avro import native_engine as _native

    return bool(_native.available())


ENGINES: Mapping[str, Engine] = {"native": Native(), "python": _generated}
