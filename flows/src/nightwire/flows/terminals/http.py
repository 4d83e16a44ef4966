"""Requests of terminals over HTTP; an address may be a secret of the worker's."""

from collections.abc import Mapping

from nightwire.core import outside
from nightwire.core.outside import MAX_ANSWER, PinnedUrl, Refused, pinned
from nightwire.flows.terminals.outgoing import BEFORE, secret


class Outside(outside.Outside):
    """Asks those outside, where a URL or the variable that holds it says; used by one thread."""

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> None:
        """Post *body*; what is answered does not matter, however long it is.

        Args:
            url: Where to, or the variable that holds it.
            body: What is posted.
            headers: Of the request.

        Raises:
            Unavailable: It was not taken; asking again may help.
            Refused: It will never be.
        """
        self.send(self._pinned(url).request(body, headers), most=0)

    def ask(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        """Return the answer to a request.

        Raises:
            Unavailable: There is none; asking again may help.
            Refused: There will never be one.
        """
        return self.send(self._pinned(url).request(body, headers, method), MAX_ANSWER)

    def _pinned(self, url: str) -> PinnedUrl:
        try:
            return pinned(secret(url), inside=self.inside)
        except Refused:
            if not url.startswith(BEFORE):
                raise
            raise Refused(f"{url} holds no URL that may be asked") from None  # it is a secret
