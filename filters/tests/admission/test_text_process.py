"""A filter's text, compiled in a process of its own: as here, or refused; never more than that."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nightwire.filters.admission import text_process
from nightwire.filters.admission.text_process import compile_apart
from nightwire.filters.language import FilterError
from nightwire.filters.model.compilation import compile_request
from nightwire.filters.model.text_facts import load_facts

CUTS = "import math\nimport astropy.units\ndef keep(alert):\n    return alert.flux > 2 and alert.snr > 1\n"


def request(source: str, language: str = "python") -> dict[str, Any]:
    """Return a request with a text."""
    entry = "keep" if language == "python" else ""
    return {"language": language, "source": source, "entry": entry, "survey": "sim", "transform": ""}


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [
        request(CUTS),
        request(CUTS.replace("alert.flux > 2", "[alert.flux][0] > 2")),
        request("flux > 2 AND psfFlux < 9", "sql"),
    ],
    ids=["compiled", "code", "sql"],
)
def test_what_is_compiled_apart_is_what_would_be_compiled_here(asked: dict[str, Any]) -> None:
    assert compile_apart(asked) == compile_request(asked)


def test_the_facts_of_a_text_are_its_packages_names_and_conditions() -> None:
    facts = load_facts(compile_apart(request(CUTS + "class A: ...\nB = A()\n")).facts)
    assert facts.imports == {"math", "astropy"}
    assert facts.probe is not None
    assert set(facts.probe.conditions) == {"line 4: alert.flux > 2", "line 4: alert.snr > 1"}
    code = load_facts(compile_apart(request("def keep(a):\n    try: return a['x'] > 1\n    except: 0")).facts)
    assert code.mentioned is not None
    assert "x" in code.mentioned


def test_reasons_are_those_of_the_compiler() -> None:
    with pytest.raises(FilterError, match="may not import os") as caught:
        compile_apart(request("import os\ndef keep(alert):\n    return open('x')"))
    assert len(caught.value.reasons) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("CPU_S", 1, "too much for the compiler"),
        ("MEMORY_MB", 150, "cannot be parsed: MemoryError|too much for the compiler"),
        ("WALL_S", 0.01, "not compiled within 0.01 s"),
    ],
)
def test_a_text_beyond_a_limit_is_refused(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: float, said: str
) -> None:
    """The limits are lower here, so that they are soon reached."""
    command = f"import {text_process.__name__} as it; it.{limit} = {value}; it.main()"
    monkeypatch.setattr(text_process, "COMMAND", (sys.executable, "-I", "-c", command))
    monkeypatch.setattr(text_process, limit, value)
    with pytest.raises(FilterError, match=said):
        compile_apart(request("X = [" + "[1]," * 600_000 + "]\ndef keep(alert):\n    return True"))


def test_the_process_has_none_of_our_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_SASL_PASSWORD", "s")
    seen = tmp_path / "seen"
    code = f"import os, sys; open({str(seen)!r}, 'w').write(str(sorted(os.environ))); sys.exit(1)"
    monkeypatch.setattr(text_process, "COMMAND", (sys.executable, "-I", "-c", code))
    with pytest.raises(FilterError):
        compile_apart(request(CUTS))
    assert "KAFKA" not in seen.read_text()


@pytest.mark.slow
def test_copies_of_helpers_do_not_grow_with_the_cube_of_their_calls() -> None:
    helpers = "".join(
        f"def h{n}(x):\n    return " + " and ".join(f"h{n + 1}(x + {k})" for k in range(60)) + "\n"
        for n in range(3)
    )
    last = "def h3(x):\n    return x > 1 and x < 2\ndef keep(alert):\n    return h0(alert.flux) and [1]\n"
    facts = load_facts(compile_request(request(helpers + last)).facts)
    assert facts.probe is not None
    assert len(facts.probe.source) < 1_000_000


def test_the_module_runs_alone() -> None:
    """It brings no NumPy, no Arrow and no Kafka, which would take longer than the compilation."""
    heavy = "{'numpy', 'pyarrow', 'confluent_kafka'}"
    code = f"import sys, {text_process.__name__}; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
