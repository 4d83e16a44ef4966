"""What is asked of a server over HTTP: bodies within bounds, and refusals."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse


class RefusedError(Exception):
    """A request is refused.

    Args:
        status: HTTP's.
        why: For a person.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


async def body_of(http: Request, most: int) -> bytes:
    """Return the body of *http*.

    Raises:
        RefusedError: It is longer than *most*. [byte]
    """
    body = bytearray()
    async for chunk in http.stream():
        body += chunk
        if len(body) > most:
            raise RefusedError(413, f"the request is longer than {most} bytes")
    return bytes(body)


async def object_of(http: Request, most: int) -> dict[str, Any]:
    """Return the JSON object that is the body of *http*; an empty body is an empty one.

    Raises:
        RefusedError: It is longer than *most* [byte], or no JSON object.
    """
    body = await body_of(http, most)
    try:
        said = json.loads(body or b"{}")
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "the body is no JSON") from error
    if not isinstance(said, dict):
        raise RefusedError(400, "the body is no JSON object")
    return said


def refusal(status: int, why: str) -> JSONResponse:
    """Return the answer that refuses a request; a browser that is asked who asks shows a form."""
    headers = {"WWW-Authenticate": 'Basic realm="nightwire"'} if status == 401 else None
    return JSONResponse({"message": why}, status, headers)
