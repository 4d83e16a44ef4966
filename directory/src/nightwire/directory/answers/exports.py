"""Documents of a site for other programs, by their standards."""

import json
from collections.abc import Callable, Mapping

from nightwire.directory.answers.asyncapi import asyncapi
from nightwire.directory.answers.voeventregext import voeventregext
from nightwire.directory.answers.votable import votable
from nightwire.directory.model import REGISTRY_TABLES, View, ivoid

Export = tuple[str, Callable[[View, str], bytes]]
"""Media type, and the function that makes a site's document."""


def regtap(view: View, site: str) -> bytes:
    """Return RegTAP's tables of *site* in one VOTable.

    Raises:
        QueryError: A table has more rows than an answer may have.
    """
    own = f"{ivoid(site, '', '').rstrip('/')}/%"
    sql = "SELECT * FROM {} WHERE ivoid LIKE ?"
    return votable({name: view.query(sql.format(name), own) for name in REGISTRY_TABLES})


def _json(view: View, site: str) -> bytes:
    return json.dumps(asyncapi(view, site), indent=1).encode()


EXPORTS: Mapping[str, Export] = {
    "asyncapi": ("application/vnd.aai.asyncapi+json;version=3.0.0", _json),
    "voeventregext": ("application/xml", voeventregext),
    "regtap": ("application/x-votable+xml", regtap),
}
"""By name."""
