"""``python -m tests.account_check REPORT``: is the harsh world as harsh as the account of that report?"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from trainmaster_client.report import Report

from tests.account_check.golden import compare


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.account_check", description=__doc__)
    parser.add_argument("report", type=Path, help="what trainmaster account-check wrote")
    parser.add_argument("--json", type=Path, default=Path("build/harsh-world.json"))
    arguments = parser.parse_args(argv)
    try:
        measured = json.loads(arguments.report.read_text(encoding="utf-8"))["facts"]["measured"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        print(f"{arguments.report} is no report of account-check: {error!r}", file=sys.stderr)  # noqa: T201
        return 2
    report = Report("harsh-world", argv=("python", "-m", "tests.account_check", *argv))
    report.facts = {"measured": measured}
    compare(report, measured)
    return report.finish(arguments.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
