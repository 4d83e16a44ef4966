"""HTTP requests of terminals, to URLs that may be secrets of the worker."""

from collections.abc import Mapping
from dataclasses import dataclass

from nightwire.core.outside import MAX_ANSWER, OutboundClient, Refused, pin_url
from nightwire.flows.terminals.terminal import ENV_PREFIX, secret


@dataclass(kw_only=True)
class HttpClient(OutboundClient):
    """An HTTP client that takes a URL, or the variable that holds one; used by one thread.

    Attributes:
        allow_private: Whether addresses of private networks are allowed.
    """

    allow_private: bool

    def ask(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], most: int = MAX_ANSWER
    ) -> bytes:
        """Return the answer to a request.

        Args:
            method: GET or POST.
            url: The URL, or the variable that holds it.
            body: Body of the request.
            headers: Headers of the request.
            most: Longest answer that is read; 0 to read none. [byte]

        Raises:
            Unavailable: No answer; asking again may help.
            Refused: There will never be an answer.
        """
        try:
            found = pin_url(secret(url), allow_private=self.allow_private)
        except Refused:
            if not url.startswith(ENV_PREFIX):
                raise
            raise Refused(f"{url} holds no URL that may be asked") from None  # it is a secret
        return self.send(found.request(body, headers, method), most)
