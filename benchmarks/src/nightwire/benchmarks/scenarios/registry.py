"""The scenarios there are: a package each beside this, whose ``scenario`` has the one class.

It is imported when it is asked for.
"""

from importlib import import_module
from pkgutil import iter_modules

from nightwire.benchmarks import Scenario

HERE = "nightwire.benchmarks.scenarios"


class UnknownScenarioError(Exception):
    """There is no such scenario; the message names those there are."""


def names() -> list[str]:
    """Return the names of all scenarios."""
    return sorted(one.name for one in iter_modules(import_module(HERE).__path__) if one.ispkg)


def scenario(name: str) -> Scenario:
    """Return a new scenario *name*.

    Raises:
        UnknownScenarioError: There is none.
    """
    if name not in names():
        raise UnknownScenarioError(f"no scenario {name!r}; there are: {', '.join(names())}")
    import_module(f"{HERE}.{name}.scenario")
    (found,) = (one for one in Scenario.__subclasses__() if one.__module__ == f"{HERE}.{name}.scenario")
    return found()
