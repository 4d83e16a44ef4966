"""The codec's engines: what executes layouts and plans.

``native`` is compiled (`native/`, built by `make native`); ``python`` is generated from the schema
and always there.  Both do the same, byte for byte.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from nightwire.schemas.avro import generated_engine, native_engine
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
        """Return an encoder of values.  It raises EncodeError."""

    def decoder(self, name: str, plan: Program, *, views: bool = False) -> Decode:
        """Return a decoder of bodies, bytes as *views*.  It raises DecodeError."""

    def batcher(self, name: str, plan: Program, paths: Sequence[Sequence[str]], schema: Any) -> Batch:
        """Return a function of bodies to a batch: a row a body, a column for each of *paths*.

        It raises DecodeError, which names the message.
        """


ENGINES: Mapping[str, Engine] = {"native": native_engine, "python": generated_engine}


def choose_engine(wanted: str | None = None) -> tuple[str, Engine]:
    """Return name and engine: the *wanted* one, or the fastest where None is given.

    The environment's ``NIGHTWIRE_CODEC`` decides where the caller does not.

    Raises:
        SchemaError: There is none of that name, or it is not built.
    """
    wanted = wanted or os.environ.get("NIGHTWIRE_CODEC") or best_engine()
    if wanted not in ENGINES:
        raise SchemaError(f"no codec engine {wanted!r}; there are: {', '.join(ENGINES)}")
    if wanted == "native" and not native_engine.available():
        raise SchemaError(native_engine.why_missing())
    return wanted, ENGINES[wanted]


@cache
def best_engine() -> str:
    """Return the name of the fastest available engine; log once that native is missing."""
    if native_engine.available():
        return "native"
    log.info("%s; Python does its work more slowly", native_engine.why_missing())
    return "python"


def engines() -> tuple[str, ...]:
    """Return the names of the engines that can be used here, the fastest first."""
    return ("native", "python") if native_engine.available() else ("python",)
