"""What a fresh clone has: the files that git tracks, and those that it would."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def tracked() -> list[Path]:
    """Return them; what git ignores is left out."""
    said = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / line for line in said.stdout.splitlines() if (ROOT / line).is_file()]
