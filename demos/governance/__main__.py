"""Break rules, stall, fail and bypass the queue, show what becomes of it, and record what happened."""

import argparse
from pathlib import Path

from rich.console import Console

from demos.governance.story import tell

REPORT = Path("build/governance.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo-governance", description=__doc__)
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    arguments = parser.parse_args()
    return tell(arguments.json, Console(highlight=False))


if __name__ == "__main__":
    raise SystemExit(main())
