"""Run the four-job example end to end, show it as it happens, and record what happened."""

import logging
import os
from pathlib import Path

from trainmaster_client.report import Report

from demos.stage import command
from training.config.choices import Precision

REPORT = Path("build/demo.json")


def main() -> int:
    parser = command.parser("demo", __doc__, report=REPORT)
    parser.add_argument(
        "--precision", type=Precision, default=Precision.AUTO, help="of the trainings (%(default)s)"
    )
    arguments = parser.parse_args()
    return command.play(
        lambda telling: _tell(telling, arguments.precision),
        command.Telling(report=Report(name=REPORT.stem), path=arguments.json),
    )


def _tell(telling: command.Telling, precision: Precision) -> int:
    os.environ.setdefault("SAGEMAKER_SUPPRESS_V2_WARNING", "1")  # read when the SDK is imported
    logging.disable(logging.INFO)  # the SDK says where it found no settings, and each endpoint it uses
    from demos.main_job.story import tell  # noqa: PLC0415  it imports the SDK

    return tell(telling, precision=precision.value)


if __name__ == "__main__":
    raise SystemExit(main())
