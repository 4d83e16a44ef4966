"""The fast half of nightwire's codec, in Rust.  See native/README.md."""

from collections.abc import Callable, Sequence
from typing import Any

from typing_extensions import Buffer

__version__: str
__sources__: str
"""Hash of the sources that it was built from; see native/tests/sources.py."""

class EncodeError(ValueError):
    """A value does not fit; the text begins with the path to it."""

class DecodeError(ValueError):
    """Bytes are cut off or malformed; the text says at which byte, and in which field."""

    message: int
    """Of a batch: which of its bodies it is, from 0."""

class Encoder:
    def __new__(
        cls, layout: str, constants: Sequence[Any], converters: Sequence[Callable[[Any], Any]]
    ) -> Encoder: ...
    def encode(self, value: Any) -> bytes: ...

class Decoder:
    def __new__(
        cls, plan: str, constants: Sequence[Any], converters: Sequence[Callable[[Any], Any]], views: bool
    ) -> Decoder: ...
    def decode(self, body: Buffer) -> Any: ...

class Batch:
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class Batcher:
    def __new__(
        cls, plan: str, paths: Sequence[Sequence[str]], constants: Sequence[Any], schema: Any
    ) -> Batcher: ...
    def batch(self, bodies: Sequence[Buffer]) -> Batch: ...

class Checker:
    """Checks VOEvents; *schemas* are tables of `gateway.voevent.schema_tables`, as JSON."""

    def __new__(cls, schemas: Sequence[str]) -> Checker: ...
    def check(self, document: bytes) -> Checked: ...

class Checked:
    """What a document is; None where only a complete parser or validator can say."""

    well_formed: bool | None
    valid: bool | None
    line: int | None
    reason: str | None
    namespace: str | None
    element: tuple[int, int] | None
    """From the root element's first byte to behind its last."""

    def is_named(self, name: str) -> bool: ...
    def attribute(self, name: str) -> str | None: ...
    def facts(self) -> Any: ...
