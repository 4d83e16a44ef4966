"""Fetch Kafka's jars: ``python -m nightwire.core.stack.fetch``, as `make setup` does."""

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from nightwire.core.cli.progress_bar import progress
from nightwire.core.runtime import NoJavaError, free_port, java_classes, java_home
from nightwire.core.stack.kafka.broker import Broker, BrokerError, kafka_archive
from nightwire.core.stack.kafka.jars import JarError, jar_folder, jars_here, locked_jars


def fetch_jars() -> None:
    """Bring Kafka's jars, with a progress bar; do nothing where they are.

    Raises:
        JarError: One could not be fetched, or is not the pinned one.
    """
    with progress(len(locked_jars()), "Kafka's jars (once)", quiet=jars_here()) as bar:
        jar_folder(lambda _jar: bar.advance())


def record_classes() -> None:
    """Start a Kafka once and keep the classes that it loads, so that the next ones start sooner.

    Raises:
        BrokerError: It did not start.
    """
    if not kafka_archive().exists():
        sys.stderr.write("recording the classes that Kafka loads (once; ten seconds)\n")
        java_classes.record(kafka_archive(), _run_kafka)


def _run_kafka(options: Sequence[str]) -> None:
    with TemporaryDirectory(prefix="nightwire-") as folder:
        broker = Broker(Path(folder), port=free_port(), controller=free_port(), options=options)
        broker.start()
        broker.stop(timeout=60)


def main() -> int:
    """Find a Java, bring Kafka's jars and record its classes; return the exit status."""
    try:
        java_home()
        fetch_jars()
        record_classes()
    except (NoJavaError, JarError, BrokerError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
