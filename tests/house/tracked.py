"""What git knows of the tree."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def tracked(root: Path) -> list[str]:
    """Paths from its root."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(path for path in set(found) if (root / path).is_file())
