"""TOM Toolkit: an event is a target, and a follow-up request for it at a facility of the TOM's."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from nightwire.core.outside import Refused, Unavailable
from nightwire.flows.terminals.http import HttpClient
from nightwire.flows.terminals.terminal import EventView, Terminal, secret
from nightwire.schemas import survey


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
        query = urlencode({"target_id": target, "facility": self.request["facility"]})
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
            raise Refused("the alert has no object with a position")
        name = f"{self.survey} {view.object_id}"
        found = self._ask("GET", f"targets/?{urlencode({'name': name})}")["results"]
        exact = [one for one in found if one.get("name") == name]
        made = {"name": name, "type": "SIDEREAL", "ra": view.ra, "dec": view.dec}
        return int((exact or [self._ask("POST", "targets/", made)])[0]["id"])

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
