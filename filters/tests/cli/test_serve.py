"""The process of the engine."""

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from nightwire.core.runtime import stopping
from nightwire.filters.cli.serve import engine_of
from nightwire.filters.engine.local import LocalEngine
from nightwire.filters.engine.settings import EngineSettings
from nightwire.filters.stats import Metrics

WITHOUT_SPARK = (
    "import sys, nightwire.filters.cli.serve; sys.exit(any(m in sys.modules for m in ('pyspark', 'py4j')))"
)


@pytest.mark.slow
def test_the_light_engine_needs_no_spark(tmp_path: Path) -> None:
    assert subprocess.run([sys.executable, "-c", WITHOUT_SPARK], check=False).returncode == 0
    settings = EngineSettings("127.0.0.1:1", "http://127.0.0.1:9", tmp_path)
    with stopping() as stop:
        one = engine_of(settings, Metrics(CollectorRegistry()), stop, light=True)
    assert isinstance(one, LocalEngine)
    assert not one.healthy()
