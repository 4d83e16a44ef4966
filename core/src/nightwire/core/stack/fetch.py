"""Fetch Java's part of the stack: ``python -m nightwire.core.stack.fetch``, as `make setup` does."""

import sys

from nightwire.core.java import NoJavaError, java_home
from nightwire.core.progress import progress
from nightwire.core.stack._jars import JarError, jar_folder, jars_here, locked_jars


def fetch_jars() -> None:
    """Bring Kafka's jars, with a progress bar; do nothing where they are.

    Raises:
        JarError: One could not be fetched, or is not the pinned one.
    """
    with progress(len(locked_jars()), "Kafka's jars (once)", quiet=jars_here()) as bar:
        jar_folder(lambda _jar: bar.advance())


def main() -> int:
    """Find a Java and bring Kafka's jars; return the exit status."""
    try:
        java_home()
        fetch_jars()
    except (NoJavaError, JarError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
