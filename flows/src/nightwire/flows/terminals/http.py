"""Requests of terminals over HTTP; an address may be a secret of the worker's."""

from collections.abc import Mapping

from nightwire.core import outside
from nightwire.core.outside import MAX_ANSWER, Refused, pinned
from nightwire.flows.terminals.outgoing import BEFORE, secret


class Outside(outside.Outside):
    """Asks those outside, where a URL or the variable that holds it says; used by one thread."""

    def ask(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], most: int = MAX_ANSWER
    ) -> bytes:
        """Return the answer to a request.

        Args:
            method: GET or POST.
            url: Where to, or the variable that holds it.
            body: What is sent.
            headers: Of the request.
            most: Longest answer that is read; of 0 none is. [byte]

        Raises:
            Unavailable: There is none; asking again may help.
            Refused: There will never be one.
        """
        try:
            found = pinned(secret(url), inside=self.inside)
        except Refused:
            if not url.startswith(BEFORE):
                raise
            raise Refused(f"{url} holds no URL that may be asked") from None  # it is a secret
        return self.send(found.request(body, headers, method), most)
