"""Play a night of two teams, walk every page of the dashboard in Chromium, and record what it showed."""

import argparse
from pathlib import Path

from demos.dashboard.story import Options, tell

REPORT = Path("build/dashboard.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demos.dashboard", description=__doc__)
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes; pictures beside it")
    parser.add_argument("--keep", action="store_true", help="leave twin and dashboard up, and print a link")
    parser.add_argument("--images", type=Path, help="where reduced copies of the pictures go (docs/images)")
    arguments = parser.parse_args()
    return tell(Options(report=arguments.json, keep=arguments.keep, images=arguments.images))


if __name__ == "__main__":
    raise SystemExit(main())
