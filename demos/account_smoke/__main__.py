"""Deploy a stack of its own, run four jobs, look at what only a stack shows, delete everything."""

import argparse
import os
import sys
from pathlib import Path

from demos.account_smoke.lent import MissingMeansError, lent_by
from demos.account_smoke.story import tell

REPORT = Path("build/account-smoke.json")


def main() -> int:
    parser = argparse.ArgumentParser(prog="account-smoke", description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask before it costs money")
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    arguments = parser.parse_args()
    try:
        lent = lent_by(os.environ)
    except MissingMeansError as error:
        print(f"account-smoke: {error}", file=sys.stderr)
        return 2
    question = (
        f"account-smoke makes the stack {lent.stack} in account {lent.account}, {lent.region}, runs four "
        "jobs of ml.m5.large on it and deletes it: 40 minutes, less than 1 USD. Go on? [y/N] "
    )
    if not arguments.yes:
        if not sys.stdin.isatty():
            print("account-smoke: there is no terminal to ask on; agree with --yes", file=sys.stderr)
            return 2
        if input(question).strip().lower() not in {"y", "yes"}:
            return 1
    return tell(lent, arguments.json)


if __name__ == "__main__":
    raise SystemExit(main())
