"""Train by SDK v2, SDK v3 and boto3, each preempted once, and record what the user saw."""

import argparse
from pathlib import Path

from rich.console import Console

from demos.client.story import tell

REPORT = Path("build/client.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demos.client", description=__doc__)
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    parser.add_argument(
        "--python-v3",
        type=Path,
        default=Path(".venv-v3/bin/python"),
        help="the Python that has SDK v3; without it that door is skipped",
    )
    arguments = parser.parse_args()
    return tell(arguments.json, arguments.python_v3, Console(highlight=False))


if __name__ == "__main__":
    raise SystemExit(main())
