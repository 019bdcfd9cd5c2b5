"""``python -m tests.worlds [--only NAME,NAME] [--seed N] [--json P]``: the plane in the harsh world."""

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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

from local.worlds import HARSH  # noqa: E402
from tests.worlds.denials import denied  # noqa: E402
from tests.worlds.many_pools import Load as Pools  # noqa: E402
from tests.worlds.many_pools import many_pools  # noqa: E402
from tests.worlds.others import random_schedules, told_on_a_twin  # noqa: E402
from tests.worlds.plans import Load as Plans  # noqa: E402
from tests.worlds.plans import plans  # noqa: E402
from tests.worlds.played import Played  # noqa: E402
from tests.worlds.scenarios import SLOW_LOOKS, Load, deepracer, live_jobs, slow_calls, starts  # noqa: E402


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    play: Callable[..., Played]
    """With a seed."""


SCENARIOS = (
    Scenario(name="deepracer", play=partial(deepracer, Load())),
    *(Scenario(name=f"live-{jobs}", play=partial(live_jobs, jobs, HARSH)) for jobs in (40, 100, 400)),
    *(Scenario(name=f"live-{jobs}-slow", play=partial(live_jobs, jobs, SLOW_LOOKS)) for jobs in (100, 400)),
    Scenario(name="starts-320", play=partial(starts, 320)),
    Scenario(name="denied-96", play=denied),
    Scenario(name="slow-calls", play=partial(slow_calls, 160, 60)),
    Scenario(name="pools-500", play=partial(many_pools, Pools())),
    *(Scenario(name=f"pools-500-slow-{slow}", play=partial(many_pools, Pools(slow=slow))) for slow in (3, 8)),
    Scenario(name="plans", play=partial(plans, Plans())),
    Scenario(name="plans-early", play=partial(plans, Plans(late_seconds=-300.0))),
    Scenario(name="plans-tight", play=partial(plans, Plans(late_seconds=120.0, drain="5m"))),
    Scenario(name="histories", play=random_schedules),
    Scenario(name="stories", play=told_on_a_twin),
)


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
    minutes = played.facts.get("simulated_minutes", "-")
    sys.stderr.write(f"{scenario.name}: {minutes} simulated minutes in {seconds} s of CPU\n")


def _chosen(text: str) -> tuple[Scenario, ...]:
    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(known[name] for name in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
