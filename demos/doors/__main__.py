"""Train by six doors, boto3 to Airflow, each preempted once, and record what each client saw."""

from pathlib import Path

from demos.stage.command import run
from demos.doors.story import tell

REPORT = Path("build/doors.json")


def main() -> int:
    return run(tell, name="python -m demos.doors", description=__doc__, report=REPORT)


if __name__ == "__main__":
    raise SystemExit(main())
