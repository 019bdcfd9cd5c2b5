"""Play each story on a twin of its own.

``python -m tests.scenarios [--only NAME,NAME] [--world kind|harsh] [--json P]``
"""

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainmaster_client.report import Report

from local.worlds import WORLDS
from tests.scenarios import landing, lengths, preempting, sharing
from tests.scenarios.stage import Stage, on_stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    name: str
    story: Callable[[Stage], None]
    policy: Mapping[str, Any]
    harsh: Mapping[str, Any] = field(default_factory=dict)
    """In what its account differs from the harsh world."""
    speed: int = 60
    """What the twin's own waits are divided by."""


KEEPS_WARM = {"warm_pool_quota": None}
"""Somebody asked AWS for a quota."""

SCENARIOS = (
    Scenario(name="reclaim", story=sharing.reclaim, policy=sharing.RECLAIM_POLICY),
    Scenario(name="wide-not-starved", story=sharing.wide_not_starved, policy=sharing.WIDE_POLICY),
    Scenario(name="victim-by-checkpoint", story=preempting.victim_by_checkpoint, policy=preempting.TWO),
    Scenario(
        name="land-in-warm-pool",
        story=landing.land_in_warm_pool,
        policy=landing.LANDING_POLICY,
        harsh=KEEPS_WARM,
    ),
    Scenario(
        name="warm-extend-release",
        story=landing.warm_extend_release,
        policy=landing.KEEPING_POLICY,
        harsh=KEEPS_WARM,
    ),
    Scenario(
        name="warm-by-worth",
        story=landing.warm_by_worth,
        policy=landing.WORTH_POLICY,
        harsh=KEEPS_WARM,
        speed=1,  # else a cold start is over sooner than the next job comes
    ),
    Scenario(name="hold-release", story=preempting.hold_release, policy=preempting.ONE),
    Scenario(name="priority-preempts", story=preempting.priority_preempts, policy=preempting.ONE),
    Scenario(name="fair-share", story=sharing.fair_share, policy=sharing.FAIR_POLICY),
    Scenario(name="price-of-preemption", story=preempting.price_of_preemption, policy=preempting.PRICED),
    Scenario(name="price-bounded", story=preempting.price_bounded, policy=preempting.BOUNDED),
    Scenario(name="no-thrash", story=preempting.no_thrash, policy=preempting.SPARING),
    Scenario(name="budget-waits", story=sharing.budget_waits, policy=sharing.BUDGET_POLICY),
    Scenario(
        name="alternatives-pinned", story=landing.alternatives_pinned, policy=landing.ALTERNATIVES_POLICY
    ),
    Scenario(name="account-limit-learned", story=sharing.account_limit_learned, policy=sharing.LIMIT_POLICY),
    Scenario(name="learned-durations", story=lengths.learned_durations, policy=lengths.LENGTHS_POLICY),
    Scenario(name="dry-run-comes-true", story=preempting.dry_run_comes_true, policy=preempting.ONE),
)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios", description=__doc__)
    parser.add_argument("--only", type=_chosen, default=SCENARIOS, metavar="NAME,NAME")
    parser.add_argument(
        "--json", type=Path, default=Path("build/scenarios.json"), help="where to write the report"
    )
    parser.add_argument("--world", choices=WORLDS, default="kind", help="how AWS behaves (docs/twin.md)")
    arguments = parser.parse_args(argv)
    report = Report("scenarios", argv=("python", "-m", "tests.scenarios", *argv))
    report.facts["scenarios"] = {}
    for scenario in arguments.only:
        play(scenario, report, world=arguments.world)
    return report.finish(arguments.json)


def play(scenario: Scenario, report: Report, *, world: str = "kind") -> None:
    """One check for each thing that the story looks at, and one for the story as a whole."""
    began, stage, error = time.monotonic(), None, None
    with TemporaryDirectory(prefix="trainmaster-scenario-") as folder:
        try:
            cast = on_stage(
                Path(folder), scenario.policy, world=world, but=scenario.harsh, speed=scenario.speed
            )
            with cast as stage:
                try:
                    scenario.story(stage)
                finally:
                    journal = stage.journal()
        except Exception:  # noqa: BLE001  one story that breaks off does not keep the others from being told
            error = traceback.format_exc()
    checks = stage.checks if stage else []
    seconds = round(time.monotonic() - began, 1)
    report.facts["scenarios"][scenario.name] = {
        "story": scenario.story.__doc__,
        "policy": scenario.policy,
        "world": world,
        "seconds": seconds,
        "records": stage.records if stage else [],
        "journal": journal if stage else [],
        "error": error,
    }
    for one in checks:
        report.check(
            f"{scenario.name}: {one['what']}", expected=one["expected"], actual=one["actual"], ok=one["ok"]
        )
    passed = sum(one["ok"] for one in checks)
    told = "told to its end" if error is None else f"broke off: {error.strip().splitlines()[-1]}"
    actual = f"{passed} of {len(checks)} true, {told}, {seconds} s"
    good = error is None and passed == len(checks) > 0
    report.check(scenario.name, expected="all of its checks are true", actual=actual, ok=good)


def _chosen(text: str) -> tuple[Scenario, ...]:
    known = {scenario.name: scenario for scenario in SCENARIOS}
    unknown = [name for name in text.split(",") if name not in known]
    if unknown:
        raise argparse.ArgumentTypeError(f"no {', '.join(unknown)}; there are {', '.join(known)}")
    return tuple(known[name] for name in text.split(","))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
