"""The native engine: the compiled codec of `native/`, where it is built, with our own errors."""

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from nightwire.schemas.avro.plans.program import Program
from nightwire.schemas.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    import pyarrow as pa

try:
    import nightwire_native as native
except ImportError:
    native = None  # type: ignore[assignment]

SOURCES = "6f6b5c805f6e011d"
"""Hash of the sources of ``nightwire-native`` that understand our layouts and plans."""


def available() -> bool:
    """Whether the native engine is installed, and built of the sources that we want."""
    return native is not None and getattr(native, "__sources__", None) == SOURCES


def why_missing() -> str:
    """Return why the native engine is not available, and what to do about it."""
    state = "not built" if native is None else "built of other sources than this code wants"
    return f"the native codec is {state}; `make native` builds it (Rust's cargo is needed)"


def encoder(name: str, layout: Program, parsed: Any) -> Callable[[Any], bytes]:
    """Return an encoder of values.  It raises EncodeError."""
    encode = native.Encoder(
        json.dumps(layout.document), list(layout.constants), list(layout.converters)
    ).encode

    def encode_named(value: Any) -> bytes:
        try:
            return encode(value)
        except native.EncodeError as error:
            raise EncodeError(f"{name}{error}") from None

    return encode_named


def decoder(name: str, plan: Program, *, views: bool = False) -> Callable[[Any], Any]:
    """Return a decoder of bodies; with *views*, bytes are memoryviews into the body.

    It raises DecodeError.
    """
    decode = native.Decoder(
        json.dumps(plan.document), list(plan.constants), list(plan.converters), views
    ).decode

    def decode_named(body: Any) -> Any:
        try:
            return decode(body)
        except native.DecodeError as error:
            raise DecodeError(f"{name}{error}") from None

    return decode_named


def batcher(
    name: str, plan: Program, paths: Sequence[Sequence[str]], schema: "pa.Schema"
) -> Callable[[Sequence[Any]], "pa.RecordBatch"]:
    """Return a function of bodies to a batch: a row a body, a column of *schema* for each path.

    It raises DecodeError, which names the message.
    """
    import pyarrow as pa

    columns = [list(path) for path in paths]
    try:
        batch = native.Batcher(json.dumps(plan.document), columns, list(plan.constants), schema).batch
    except ValueError as error:
        raise DecodeError(f"{name}: {error}") from None

    def batch_named(bodies: Sequence[Any]) -> "pa.RecordBatch":
        try:
            return pa.record_batch(batch(list(bodies)))
        except native.DecodeError as error:
            raise DecodeError(f"message {error.message}: {name}{error}") from None
        except ValueError as error:  # values that Arrow has no room for
            raise DecodeError(f"{name}: {error}") from None

    return batch_named
