"""What every nightwire process needs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nightwire.core import access, accounting, cli, kafka, runtime, stack

__version__ = "0.1.0.dev0"

__all__ = ["__version__", "access", "accounting", "cli", "kafka", "runtime", "stack"]
