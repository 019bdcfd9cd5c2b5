"""``make demo-training``: the proof of training, told as the other demos are.

Its attempts are limited by silence, not by the clock: one that prints nothing for as long as the other demos
wait is given up, and the checks say so.
"""

import argparse
import sys
from pathlib import Path

from trainmaster_client.report import Report

from benchmarks.training.proof.__main__ import main as prove
from demos.stage.command import Telling, play
from demos.stage.patience import STANDSTILL_SECONDS

REPORT = Path("build/training.json")


def main() -> int:
    parser = argparse.ArgumentParser(add_help=False)  # the proof's own help tells of all options
    parser.add_argument("--json", type=Path, default=REPORT)
    known, _ = parser.parse_known_args()
    patience = [f"--silent-seconds={STANDSTILL_SECONDS}"]
    return play(
        lambda _: prove([*patience, *sys.argv[1:]]),  # what the user says comes later, and counts
        Telling(report=Report(name=REPORT.stem), path=known.json),
    )


if __name__ == "__main__":
    raise SystemExit(main())
