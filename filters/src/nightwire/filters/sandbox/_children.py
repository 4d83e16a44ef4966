"""Who has which process: one for each owner, kept from batch to batch."""

import time

from nightwire.filters.sandbox._contract import Limits, SandboxError, Strength
from nightwire.filters.sandbox._layers import layers
from nightwire.filters.sandbox._parent import Parent, ParentLostError
from nightwire.filters.sandbox._process import Child, LostError
from nightwire.filters.sandbox._protocol import RELEASE
from nightwire.filters.sandbox._walls import LAYERS, required

IDLE_S = 600.0
"""How long a process that is not asked anything is kept. [s]"""

TRIES = 3
"""Of starting a process."""


class Children:
    """The processes of all owners.

    Args:
        strength: ``strong``: one that lacks a wall is not used.
        limits: Of each.

    Raises:
        SandboxError: None can be had.
    """

    def __init__(self, strength: Strength, limits: Limits) -> None:
        self._strength = strength
        self._limits = limits
        self._parent = Parent(limits)
        self._of: dict[str, Child] = {}

    def close(self) -> None:
        """End them all."""
        while self._of:
            self._of.popitem()[1].close()
        self._parent.close()

    def try_walls(self) -> list[str]:
        """Start a process for nobody, and return which layers it lacks.

        Raises:
            SandboxError: It lacks one, and the sandbox is to be strong.
        """
        child = self._new(frozenset())
        self._parent.end(child)
        return child.missing

    def warm(self, groups: frozenset[str]) -> None:
        """Import heavy modules beforehand.

        Raises:
            SandboxError: The parent is lost, and another does not come up.
        """
        try:
            self._parent.warm(groups)
        except ParentLostError:
            self._parent.restart()

    def of(self, owner: str, groups: frozenset[str]) -> Child:
        """Return *owner*'s process, which has the modules of *groups*: the one there is, or a new one.

        Raises:
            SandboxError: None can be had.
        """
        child = self._of.get(owner)
        if child and (not child.is_quiet() or child.is_old() or not groups <= child.groups):
            self.discard(owner)
            child = None
        if child is None:
            child = self._of[owner] = self._new(groups)
        child.used_at = time.monotonic()
        return child

    def end(self, owner: str) -> int:
        """End *owner*'s process; return the status with which it ended."""
        return self._parent.end(self._of.pop(owner))

    def discard(self, owner: str) -> None:
        """End *owner*'s process, and do not wait until it has: the larger it is, the longer that takes."""
        self._parent.discard(self._of.pop(owner))

    def end_all(self) -> None:
        """End everybody's process."""
        for owner in list(self._of):
            self.discard(owner)

    def rest(self, owner: str) -> None:
        """Have *owner*'s process forget its batch."""
        child = self._of.get(owner)
        if child is None:
            return
        try:
            child.tell(RELEASE, {})
        except LostError:
            self.discard(owner)

    def end_idle(self) -> None:
        """End those that have had nothing to do for long."""
        oldest = time.monotonic() - IDLE_S
        for owner in [owner for owner, child in self._of.items() if child.used_at < oldest]:
            self.discard(owner)

    def _new(self, groups: frozenset[str]) -> Child:
        for _ in range(TRIES):
            try:
                self._parent.warm(groups)
                child = self._parent.fork()
            except ParentLostError:
                self._parent.restart()
            except LostError:
                continue
            else:
                self._check(child)
                return child
        raise SandboxError(f"no process for a filter could be started in {TRIES} tries")

    def _check(self, child: Child) -> None:
        lacks = required(child.missing)
        if self._strength == "weak" or not lacks:
            return
        self._parent.end(child)
        found = layers()
        said = "; ".join(f"{layer} ({LAYERS[layer]}): {found.get(layer) or 'refused'}" for layer in lacks)
        raise SandboxError(
            f"a filter's process cannot be contained here: there is no {said}. Filters that cannot be"
            " compiled are refused; if you trust their owners, say `--sandbox weak`"
        )
