"""A webhook: prints what it is told, a line each."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Hook(BaseHTTPRequestHandler):
    """Answers every POST."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        sys.stdout.write(body.decode().replace("\n", " ") + "\n")
        sys.stdout.flush()
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing of requests: what is told alone is printed."""


HTTPServer(("0.0.0.0", 8000), Hook).serve_forever()  # noqa: S104  (inside its container)
