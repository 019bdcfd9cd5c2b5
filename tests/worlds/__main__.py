"""``python -m tests.worlds [--only NAME,NAME] [--seed N] [--json P]``: the plane in the harsh world."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from trainmaster_client.report import Report

ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "POWERTOOLS_METRICS_NAMESPACE": "trainmaster",
    "POWERTOOLS_SERVICE_NAME": "trainmaster",
}
"""Of the functions, which read a part of it as they are imported."""
os.environ |= ENVIRONMENT

from tests.worlds.scenarios import SCENARIOS, Scenario  # noqa: E402


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.worlds", description=__doc__)
    parser.add_argument("--only", type=_chosen, default=SCENARIOS, metavar="NAME,NAME")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--json", type=Path, default=Path("build/worlds.json"), help="where to write the report"
    )
    arguments = parser.parse_args(argv)
    report = Report("worlds", argv=("python", "-m", "tests.worlds", *argv))
    report.facts |= {"seed": arguments.seed, "scenarios": {}}
    for scenario in arguments.only:
        play(scenario, arguments.seed, report)
    return report.finish(arguments.json)


def play(scenario: Scenario, seed: int, report: Report) -> None:
    began = time.process_time()
    try:
        played = scenario.play(seed=seed)
    except Exception:  # noqa: BLE001  one scenario that breaks off does not keep the others from being played
        error = traceback.format_exc()
        report.facts["scenarios"][scenario.name] = {"error": error}
        last = error.strip().splitlines()[-1]
        report.check(scenario.name, expected="played to its end", actual=f"broke off: {last}", ok=False)
        return
    seconds = round(time.process_time() - began, 1)
    report.facts["scenarios"][scenario.name] = {**played.facts, "cpu_seconds": seconds}
    for one in played.checks:
        report.check(
            f"{scenario.name}: {one['what']}", expected=one["expected"], actual=one["actual"], ok=one["ok"]
        )
    sys.stderr.write(f"{scenario.name}: {played.facts['simulated_minutes']} minutes in {seconds} s\n")


def _chosen(text: str) -> tuple[Scenario, ...]:
    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(known[name] for name in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
