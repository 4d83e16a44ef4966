"""Schemas kept on disk, so that work goes on while their registry is away."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


class SchemaCache:
    """One folder per registry, one JSON file per id.  Losing it costs nothing but a request.

    Args:
        folder: Where the folders of all registries lie; made when first needed.
        url: Address of the registry.
    """

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder / hashlib.sha256(url.rstrip("/").encode()).hexdigest()[:16]

    def load(self, schema_id: int) -> dict[str, Any] | None:
        """Return the schema of that id, or None where it is not here or not readable."""
        try:
            schema = json.loads((self.folder / f"{schema_id}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return schema if isinstance(schema, dict) else None

    def save(self, schema_id: int, schema: dict[str, Any]) -> None:
        """Keep *schema*, whole or not at all.  A disk that is full or read-only is no reason to stop."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(schema, file)
            Path(name).replace(self.folder / f"{schema_id}.json")
        except OSError:
            return
