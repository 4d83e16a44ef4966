"""Those who get events outside Kafka, for tests: a server that answers as it is told, and a TOM."""

import json
import threading
import time
from contextlib import AbstractContextManager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests._serving import serving


class Receiver(ThreadingHTTPServer):
    """Notes what is posted; answers with *status*, and waits before while *hang* is set.

    With a *pace* [s] it waits so long before each byte of its answer.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.refused = 0
        self.status, self.location = 200, ""
        self.pace = 0.0
        self.hang = threading.Event()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://localhost:{self.server_port}/hook"

    @property
    def ids(self) -> list[str]:
        """The keys of what it took, in order."""
        return [headers["idempotency-key"] for headers, _ in self.got]


class Handler(BaseHTTPRequestHandler):
    """Answers."""

    server: Receiver

    def do_POST(self) -> None:
        """Take what is posted, where that is what it is told."""
        body = self.rfile.read(int(self.headers["content-length"]))
        while self.server.hang.is_set():
            time.sleep(0.05)
        if self.server.status == 200:
            self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        else:
            self.server.refused += 1
        for byte in b"HTTP/1.1 200 OK\r\n" if self.server.pace else b"":
            time.sleep(self.server.pace)
            with suppress(OSError):
                self.wfile.write(bytes([byte]))
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("location", self.server.location)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


class Tom(ThreadingHTTPServer):
    """Answers as TOM Toolkit 3.1 does, to requests that have all that its API asks for.

    Targets are not seen in so many lists as *late* says, as where another terminal makes them just
    then.  The facility takes *pace* [s]; a *location* is where the TOM redirects, unfollowed, who
    asks for an observation while the facility refuses its password.
    """

    daemon_threads = True
    wanted = ("facility", "observation_type", "target_id", "observing_parameters")
    page = 2

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), TomHandler)
        self.targets: list[dict[str, Any]] = []
        self.observations: list[dict[str, Any]] = []
        self.late, self.pace, self.location = 0, 0.0, ""


class TomHandler(BaseHTTPRequestHandler):
    """Answers a request of the API."""

    server: Tom

    def do_GET(self) -> None:
        """List targets of a name, or observations of a target that has some."""
        path, asked = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
        if path != "/api/targets/":
            target = int(asked["target_id"][0])
            found = [one for one in self.server.observations if one["target_id"] == target]
            return self._page(found) if found else self._say(400, {"target_id": ["Select a valid choice."]})
        if self.server.late:
            self.server.late -= 1
            return self._page([])
        begin, name = int(asked.get("offset", "0")[0]), asked["name"][0]
        return self._page([one for one in self.server.targets if name in one["name"]], begin)

    def do_POST(self) -> None:
        """Make a target, or an observation."""
        said = json.loads(self.rfile.read(int(self.headers["content-length"])))
        targets = urlsplit(self.path).path == "/api/targets/"
        wanted = ("name", "type", "ra", "dec") if targets else self.server.wanted
        if self.headers["authorization"] != "Token swordfish":
            return self._say(401, {"detail": "Invalid token."})
        if missing := [name for name in wanted if name not in said]:
            return self._say(400, [f"Missing required field {missing}."])
        if targets and said["name"] in [one["name"] for one in self.server.targets]:
            return self._say(400, {"name": ["target with this Name already exists."]})
        if self.server.location and not targets:
            return self._say(302, {})
        time.sleep(0.0 if targets else self.server.pace)
        made = self.server.targets if targets else self.server.observations
        made.append({**said, "id": len(made) + 1})
        return self._say(201, made[-1] if targets else made[-1:])

    def _page(self, found: list[dict[str, Any]], begin: int = 0) -> None:
        end = begin + self.server.page
        more = f"http://elsewhere{self.path.partition('&offset')[0]}&offset={end}"
        some = {"results": found[begin:end], "next": more if end < len(found) else None}
        self._say(200, {"count": len(found), "previous": None, **some})

    def _say(self, status: int, body: Any) -> None:
        self.send_response(status)
        if status == 302:
            self.send_header("location", self.server.location)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_words: object) -> None:
        """Say nothing."""


def receiver() -> AbstractContextManager[Receiver]:
    """Return one that runs until the block ends."""
    return serving(Receiver())


class Dripping(ThreadingTCPServer):
    """Sends *begin* to who comes, then a byte each tenth of a second for ever."""

    daemon_threads = True

    def __init__(self, begin: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Drip)
        self.begin = begin


class Drip(BaseRequestHandler):
    """Sends."""

    server: Dripping

    def handle(self) -> None:
        """Send until the other hangs up."""
        self.request.sendall(self.server.begin)
        with suppress(OSError):
            while True:
                time.sleep(0.1)
                self.request.sendall(b"x")
