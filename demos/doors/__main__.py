"""Train by six doors, boto3 to Airflow, each preempted once, and record what each client saw."""

import argparse
from pathlib import Path

from rich.console import Console

from demos.doors.story import tell

REPORT = Path("build/doors.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demos.doors", description=__doc__)
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    return tell(parser.parse_args().json, Console(highlight=False))


if __name__ == "__main__":
    raise SystemExit(main())
