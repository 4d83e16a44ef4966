"""The native engine, where it is built: `native/` behind the codec's interface, its faults as our errors."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nightwire.schemas.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    import pyarrow as pa

try:
    import nightwire_native as native
except ImportError:
    native = None  # type: ignore[assignment]

WANTED = "0.1.0"
"""Version of ``nightwire-native`` that understands our layouts and plans."""


def version() -> str | None:
    """Return the version of ``nightwire-native`` that is installed, None without it."""
    return None if native is None else str(native.__version__)


def available() -> bool:
    """Whether the native engine is here, in the version that we want."""
    return version() == WANTED


def encoder(
    name: str,
    layout: Mapping[str, Any],
    constants: Sequence[Any],
    converters: Sequence[Callable[[Any], Any]],
) -> Callable[[Any], bytes]:
    """Return what makes the Avro body of a value of the schema *name*.

    It raises EncodeError.
    """
    encode = native.Encoder(json.dumps(layout), list(constants), list(converters)).encode

    def checked(value: Any) -> bytes:
        try:
            return encode(value)
        except native.EncodeFault as fault:
            raise EncodeError(f"{name}{fault}") from None

    return checked


def decoder(
    name: str,
    plan: Mapping[str, Any],
    constants: Sequence[Any],
    converters: Sequence[Callable[[Any], Any]],
    *,
    views: bool = False,
) -> Callable[[Any], Any]:
    """Return what makes the value of an Avro body; with *views*, bytes are memoryviews into it.

    It raises DecodeError.
    """
    decode = native.Decoder(json.dumps(plan), list(constants), list(converters), views).decode

    def checked(body: Any) -> Any:
        try:
            return decode(body)
        except native.DecodeFault as fault:
            raise DecodeError(f"{name}{fault}") from None

    return checked


def batcher(
    name: str,
    plan: Mapping[str, Any],
    paths: Sequence[Sequence[str]],
    constants: Sequence[Any],
    schema: "pa.Schema",
) -> Callable[[Sequence[Any]], "pa.RecordBatch"]:
    """Return what makes a row of each body, with a column of *schema* for each of *paths*.

    It raises DecodeError, which names the message.
    """
    import pyarrow as pa

    rows = native.Batcher(json.dumps(plan), [list(path) for path in paths], list(constants), schema).batch

    def checked(bodies: Sequence[Any]) -> "pa.RecordBatch":
        try:
            return pa.record_batch(rows(list(bodies)))
        except native.DecodeFault as fault:
            raise DecodeError(f"message {fault.message}: {name}{fault}") from None

    return checked
