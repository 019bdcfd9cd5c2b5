"""Train by SDK v2, SDK v3 and boto3, each preempted once, and record what the user saw."""

from pathlib import Path

from trainmaster_client.report import Report

from demos.stage import command
from demos.client.story import tell

REPORT = Path("build/client.json")


def main() -> int:
    parser = command.parser("python -m demos.client", __doc__, report=REPORT)
    parser.add_argument(
        "--python-v3",
        type=Path,
        default=Path(".venv-v3/bin/python"),
        help="the Python that has SDK v3; without it that door is skipped",
    )
    arguments = parser.parse_args()
    return command.play(
        lambda telling: tell(telling, arguments.python_v3),
        command.Telling(report=Report(name=REPORT.stem), path=arguments.json),
    )


if __name__ == "__main__":
    raise SystemExit(main())
