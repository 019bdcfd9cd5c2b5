"""``python -m tests.house [--root R] [--json P]``: the tree measured by the project's own rules."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from trainmaster_client.report import Report

from tests.house.measures import note_all
from tests.house.tracked import ROOT, tracked


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout; this one if not given")
    parser.add_argument(
        "--json", type=Path, default=Path("build/house.json"), help="where to write the report"
    )
    arguments = parser.parse_args(argv)
    report = Report("house", argv=("python", "-m", "tests.house", *argv))
    note_all(report, arguments.root, tracked(arguments.root))
    return report.finish(arguments.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
