"""The proof that the simulator is the scheduler: what twins did, replayed from their exported histories.

``python -m tests.simulate_twin [--only NAME,NAME] [--jobs N] [--seeds 1,2] [--replay P] [--json P]``
"""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

from trainmaster_client.report import Report

from tests.scenarios.__main__ import SCENARIOS
from tests.simulate_twin.planned_jobs import FOUR_JOBS, drawn_history
from tests.simulate_twin.recordings import Recording, played, told
from tests.simulate_twin.replayed import check, replayed, worst_lines

NOT_REPLAYED: Mapping[str, str] = {
    "warm-extend-release": "the queue is paused meanwhile, which no history tells",
    "hold-release": "a job is held meanwhile, which no history tells",
    "priority-preempts": "a priority is changed meanwhile; a history tells the last one alone",
    "alternatives-pinned": "a job takes any of several instance types; a history tells one",
    "account-limit-learned": "the account refuses starts, which is not in the model",
}
"""Stories of which a replay cannot know the reason, by name."""
JOBS = 500


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulate_twin", description=__doc__)
    parser.add_argument("--only", type=_names, default=None, metavar="NAME,NAME", help="of these runs alone")
    parser.add_argument("--jobs", type=int, default=JOBS, metavar="N", help="of each random history")
    parser.add_argument("--seeds", type=_seeds, default=(1,), metavar="1,2", help="of random histories")
    parser.add_argument(
        "--json", type=Path, default=Path("build/simulate-twin.json"), help="where to write the report"
    )
    parser.add_argument(
        "--replay",
        type=Path,
        metavar="P",
        help="an earlier report whose recordings are replayed",
    )
    arguments = parser.parse_args(argv)
    if arguments.replay is None:
        runs = plays(jobs=arguments.jobs, seeds=arguments.seeds)
    else:
        runs = recorded(arguments.replay)
    chosen = arguments.only or list(runs)
    if unknown := [name for name in chosen if name not in runs]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(runs)}")
    report = Report("simulate-twin", argv=("python", "-m", "tests.simulate_twin", *argv))
    report.facts |= {"runs": {}, "seconds": {}, "not_replayed": dict(NOT_REPLAYED)}
    for name in chosen:
        run(name, runs[name], report)
    return report.finish(arguments.json)


def plays(*, jobs: int, seeds: Sequence[int]) -> Mapping[str, Callable[[], Recording]]:
    """What can be played, by name."""
    stories = {one.name: partial(told, one) for one in SCENARIOS if one.name not in NOT_REPLAYED}
    drawn = [drawn_history(seed, jobs=jobs) for seed in seeds]
    return (
        {one.name: partial(played, one) for one in (FOUR_JOBS,)}
        | stories
        | {one.name: partial(played, one) for one in drawn}
    )


def recorded(path: Path) -> Mapping[str, Callable[[], Recording]]:
    """What a report has of its runs, by name."""
    runs = json.loads(path.read_text(encoding="utf-8"))["facts"]["runs"]
    names = [one.name for one in fields(Recording)]
    return {name: partial(Recording, **{field: one[field] for field in names}) for name, one in runs.items()}


def run(name: str, play: Callable[[], Recording], report: Report) -> None:
    began = time.monotonic()
    try:
        recording = play()
    except Exception:  # noqa: BLE001  one story that breaks off does not keep the others from being replayed
        last = traceback.format_exc().strip().splitlines()[-1]
        report.check(name, expected="played to its end", actual=f"broke off: {last}", ok=False)
        return
    between = time.monotonic()
    found = replayed(recording)
    check(report, found)
    report.facts["seconds"][name] = {
        "twin": round(between - began, 1),
        "replay": round(time.monotonic() - between, 2),
    }
    for line in (f"{name}: {len(found.jobs)} jobs, {len(found.attempts)} attempts", *worst_lines(found)):
        sys.stderr.write(f"{line}\n")


def _names(text: str) -> list[str]:
    return text.split(",")


def _seeds(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(one) for one in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of whole numbers; use e.g. 1,2") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
