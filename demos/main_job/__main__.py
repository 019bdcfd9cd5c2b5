"""Run the four-job example end to end, show it as it happens, and record what happened."""

import argparse
import logging
import os
from pathlib import Path

from rich.console import Console

REPORT = Path("build/demo.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    arguments = parser.parse_args()
    os.environ.setdefault("SAGEMAKER_SUPPRESS_V2_WARNING", "1")  # read when the SDK is imported
    logging.disable(logging.INFO)  # the SDK says where it found no settings, and each endpoint it uses
    from demos.main_job.story import tell  # noqa: PLC0415  it imports the SDK

    return tell(arguments.json, Console(highlight=False))


if __name__ == "__main__":
    raise SystemExit(main())
