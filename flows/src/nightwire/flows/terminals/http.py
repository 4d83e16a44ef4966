"""HTTP requests of terminals, to URLs that may be secrets of the worker."""

from collections.abc import Mapping

from nightwire.core import outside
from nightwire.core.outside import MAX_ANSWER, Refused, pinned
from nightwire.flows.terminals.terminal import ENV_PREFIX, secret


class HttpClient(outside.Outside):
    """An HTTP client that takes a URL, or the variable that holds one; used by one thread."""

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
            found = pinned(secret(url), inside=self.inside)
        except Refused:
            if not url.startswith(ENV_PREFIX):
                raise
            raise Refused(f"{url} holds no URL that may be asked") from None  # it is a secret
        return self.send(found.request(body, headers, method), most)
