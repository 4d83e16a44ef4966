"""Look for documents that the gateway does not stand, guided by coverage.  A program, not a test:

    uv run --with atheris python gateway-vtp/tests/voevent/fuzz.py -max_total_time=600 FOLDER…

The folders hold documents to begin with; what is found is written to the first of them.  A document
that breaks `stands` goes into `test_hostile_documents.SEEDS`, which runs every day.
"""

import sys

import atheris

with atheris.instrument_imports(include=["nightwire"]):
    from hostile import stands

if __name__ == "__main__":
    atheris.Setup(sys.argv, stands)
    atheris.Fuzz()
