"""TOM Toolkit: an event is a target, and a follow-up request for it at a facility of the TOM's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from nightwire.core.outside import AGAIN, Refused, Unavailable
from nightwire.flows.terminals.http import HttpClient
from nightwire.flows.terminals.terminal import EventView, Rejected, Terminal, secret
from nightwire.schemas import survey

TIMEOUT = 60.0
"""Longest time for an answer: the TOM asks the facility meanwhile. [s]"""
MENDABLE_ANSWERS = AGAIN | {302, 401, 403}
"""Answers after which asking again may help: tokens expire, and a TOM that is refused by the
facility, for its own password there, redirects to its front page."""


@dataclass
class Tom(Terminal):
    """Asks a TOM, by its REST API, to observe the objects of alerts.

    Attributes:
        url: URL of the TOM.
        token: The variable that holds the token of a user.
        survey: Survey of the alerts.
        request: ``facility``, ``observation_type`` and ``parameters``, whose texts are templates.
        client: The HTTP client.
    """

    url: str
    token: str
    survey: str
    request: Mapping[str, Any]
    client: HttpClient

    def deliver(self, event: EventView) -> None:
        """Request an observation, unless the TOM has one of the object at that facility."""
        target = self._target(event)
        if self._is_requested(target):
            return
        made = {
            "name": event.identity,
            "target_id": target,
            "facility": self.request["facility"],
            "observation_type": self.request["observation_type"],
            "observing_parameters": _filled(self.request["parameters"], event),
        }
        self._ask("POST", "observations/", made)

    def _is_requested(self, target: int) -> bool:
        query = urlencode({"target_id": target, "facility": self.request["facility"], "limit": 1})
        try:
            return bool(self._ask("GET", f"observations/?{query}")["count"])
        except Refused as error:
            if "answers 400" not in str(error):
                raise
            return False  # a TOM does not know the id of a target without observations

    def _target(self, event: EventView) -> int:
        """Return the id of the target of the alert's object, which is made where it is missing."""
        view = survey(self.survey).view(dict(event.fields))
        if view.object_id is None or view.ra is None or view.dec is None:
            raise Rejected("no object with a position")
        name = f"{self.survey} {view.object_id}"
        made = {"name": name, "type": "SIDEREAL", "ra": view.ra, "dec": view.dec}
        if (found := self._find_target(name)) is None:
            try:
                found = int(self._ask("POST", "targets/", made)["id"])
            except Refused:
                if (found := self._find_target(name)) is None:  # no other terminal has made it
                    raise
        return found

    def _find_target(self, name: str) -> int | None:
        """Return the id of target *name*; the TOM lists all whose names contain it, in pages."""
        query = urlencode({"name": name})
        while query:
            page = self._ask("GET", f"targets/?{query}")
            if exact := [one["id"] for one in page["results"] if one["name"] == name]:
                return int(exact[0])
            query = urlsplit(page["next"] or "").query
        return None

    def _ask(self, method: str, path: str, content: Any = None) -> Any:
        headers = {"authorization": f"Token {secret(self.token)}", "content-type": "application/json"}
        body = b"" if content is None else json.dumps(content).encode()
        answer = self.client.ask(method, f"{self.url.rstrip('/')}/api/{path}", body, headers)
        try:
            return json.loads(answer)
        except ValueError as error:
            raise Unavailable(f"{method} {path}: the answer is no JSON") from error

    def close(self) -> None:
        """Close the connections."""
        self.client.close()


def _filled(value: Any, event: EventView) -> Any:
    """Return *value* with fields of *event* in its texts."""
    if isinstance(value, Mapping):
        return {name: _filled(one, event) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, event) for one in value]
    return value if isinstance(value, int | float) else event.text(str(value))  # TOML has dates
