"""The engine in Python: readers and writers generated from plans and layouts."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from nightwire.schemas.avro.generated.read import Reader
from nightwire.schemas.avro.generated.write import Writer
from nightwire.schemas.avro.plans.program import Program
from nightwire.schemas.avro.plans.project import project
from nightwire.schemas.avro.plans.validate import compile_validator
from nightwire.schemas.errors import DecodeError

if TYPE_CHECKING:
    import pyarrow as pa


def encoder(name: str, layout: Program, parsed: Any) -> Writer:
    """Return an encoder of values.  It raises EncodeError."""
    return Writer(name, layout, compile_validator(parsed))


def decoder(name: str, plan: Program, *, views: bool = False) -> Reader:
    """Return a decoder of bodies, bytes as *views*.  It raises DecodeError."""
    return Reader(name, plan, views=views)


def batcher(
    name: str, plan: Program, paths: Sequence[Sequence[str]], schema: Any
) -> Callable[[Sequence[Any]], "pa.RecordBatch"]:
    """Return a function of bodies to a batch.  It raises DecodeError, which names the message."""
    from nightwire.schemas.avro.arrow import record_batch  # pyarrow takes 0.1 s to import

    read = Reader(name, project(plan, paths))

    def one(number: int, body: Any) -> Any:
        try:
            return read(body)
        except DecodeError as error:
            raise DecodeError(f"message {number}: {error}") from error

    return lambda bodies: record_batch(paths, schema, [one(at, body) for at, body in enumerate(bodies)])
