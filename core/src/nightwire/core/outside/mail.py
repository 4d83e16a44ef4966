"""The addresses to which mail may go."""

import re

MAIL_ADDRESS = re.compile(r"[\w.+-]+@([\w-]+(?:\.[\w-]+)*)", re.ASCII)


def may_be_mailed(to: str, allowed: str) -> bool:
    """Return whether *to* is one plain address that *allowed* names, or whose domain; by commas."""
    known = {one.strip().lower() for one in allowed.split(",") if one.strip()}
    found = MAIL_ADDRESS.fullmatch(to)
    return found is not None and not known.isdisjoint({to.lower(), found[1].lower()})
