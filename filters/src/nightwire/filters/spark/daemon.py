"""The process from which Spark forks its workers, with all that they import already there.

Spark starts it as its own ``pyspark.daemon``, which it is, but for these imports: each worker would
do them again, also the one that comes for one that died.
"""

from pyspark.daemon import manager

from nightwire.filters.spark import filter_source  # noqa: F401  (a worker unpickles and runs it)

if __name__ == "__main__":
    manager()
