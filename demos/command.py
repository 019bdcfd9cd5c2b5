"""What the commands of demos have in common: one option, and a story that is played on the terminal."""

import argparse
from collections.abc import Callable
from pathlib import Path

from rich.console import Console


def run(tell: Callable[[Path, Console], int], *, name: str, description: str | None, report: Path) -> int:
    """The exit code. ``report``: where it goes unless the user says otherwise."""
    parser = argparse.ArgumentParser(prog=name, description=description)
    parser.add_argument("--json", type=Path, default=report, help="where the report goes")
    return tell(parser.parse_args().json, Console(highlight=False))
