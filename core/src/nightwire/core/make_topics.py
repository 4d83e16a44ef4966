"""Make the topics that a stack needs, where they are missing: ``python -m nightwire.core.make_topics``.

For stacks whose Kafka somebody else starts: compose, or a cluster.  The number of
replicas is the cluster's ``default.replication.factor``.
"""

import sys

from nightwire.core.endpoints import find_endpoints
from nightwire.core.kafka import ensure_topics
from nightwire.core.process import setup_logging
from nightwire.core.stack._topics import stack_topics


def main() -> int:
    """Make them in the Kafka of ``KAFKA_BOOTSTRAP_SERVERS``; return the exit status."""
    log = setup_logging("nightwire.topics")
    topics = stack_topics(None)
    ensure_topics(find_endpoints().kafka, topics)
    log.info("there are %s", ", ".join(topic.name for topic in topics))
    return 0


if __name__ == "__main__":
    sys.exit(main())
