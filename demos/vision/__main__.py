"""Train a small vision transformer, preempt it, and compare its losses with an undisturbed run."""

import argparse
from pathlib import Path

from rich.console import Console

from demos.vision.story import tell

REPORT = Path("build/vit.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demos.vision", description=__doc__)
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    return tell(parser.parse_args().json, Console(highlight=False))


if __name__ == "__main__":
    raise SystemExit(main())
