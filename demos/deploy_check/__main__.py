"""Deploy template.yaml as it is, run the four-job example on it, and record what happened."""

import argparse
import logging
import sys
from pathlib import Path

from rich.console import Console

from demos.deploy_check.ministack import PROGRAM
from local.reaper import supervise

REPORT = Path("build/deploy.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="deploy-check", description=__doc__)
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    parser.add_argument(
        "--template", type=Path, help="this template, whose code is built; not the checkout's own"
    )
    arguments = parser.parse_args()
    logging.disable(logging.INFO)
    if not PROGRAM.exists():
        print(f"deploy-check: there is no {PROGRAM}; make deploy-check installs it", file=sys.stderr)
        return 2
    from demos.deploy_check.story import tell  # noqa: PLC0415  half a second that --help should not cost

    return supervise(lambda: tell(arguments.json, Console(highlight=False), arguments.template))


if __name__ == "__main__":
    raise SystemExit(main())
