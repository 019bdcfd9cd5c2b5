"""What other runners play in the harsh world too: random schedules here, stories on twins of their own."""

from collections import Counter

from trainmaster_client.report import Report

from tests.histories.playing import play
from tests.scenarios import __main__ as stories
from tests.worlds.played import Played

HISTORIES = 200
STORIES = ("hold-release", "priority-preempts")
"""A bounded number: ``python -m tests.scenarios --world harsh`` plays all."""


def random_schedules(*, seed: int, count: int = HISTORIES) -> Played:
    """Each step is judged by the invariants; a broken one ends the history with its seed."""
    counts, broken = Counter[str](), dict[int, str]()
    for number in range(seed, seed + count):
        try:
            watch = play(number, world="harsh").world.watch
        except AssertionError as error:
            broken[number] = str(error)
        else:
            counts += Counter(
                starts=sum(watch.starts.values()), preemptions=watch.preemptions, retries=watch.retries
            )
    played = Played({"histories": count, "counts": dict(counts), "broken": broken})
    played.check("every history keeps the invariants", expected={}, actual=broken)
    return played


def told_on_a_twin(*, seed: int) -> Played:
    """The twin draws its own world; ``seed`` has no say in a story."""
    report = Report("scenarios")
    report.facts["scenarios"] = {}
    for story in stories.SCENARIOS:
        if story.name in STORIES:
            stories.play(story, report, world="harsh")
    played = Played({"seed": seed, **report.facts["scenarios"]})
    for one in report.checks:
        played.check(one.id, expected=one.expected, actual=one.actual, ok=bool(one.ok))
    return played
