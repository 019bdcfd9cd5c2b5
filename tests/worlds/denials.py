"""Starts that AWS denies for a while, in the harsh world: nobody loses a job by it."""

from collections import Counter
from typing import Any

from local.worlds import HARSH
from tests.worlds.plane import MINUTE, Plane
from tests.worlds.played import Played
from tests.worlds.scenarios import policy

DENIED_JOBS = 96
DENIED_MINUTES = 3
PROBES_APART_MINUTES = 4
"""The longest wait between two tries of a pause that lasts for three minutes."""
START_MINUTES = 4
"""96 Creates at one a second, and what the pass before them began."""
MOST_DENIED_TRIES = 84
"""Five passes of eight hands each may be under way when the third job is refused, and each start is sent
with and without a keep-alive; then one job at a time tries. Without a pause it would be all 96 each time."""


def denied(jobs: int = DENIED_JOBS, minutes: int = DENIED_MINUTES, *, seed: int) -> Played:
    """All of them wait while nobody may create a training job; later ones start when that is over."""
    plane = Plane(HARSH, policy(jobs), seed=seed)
    limit = minutes + PROBES_APART_MINUTES + START_MINUTES
    looks: list[dict[str, Any]] = []
    with plane.deployed():
        plane.sagemaker.deny(seconds=minutes * MINUTE)
        for number in range(jobs):
            plane.submit(f"job-{number}", at=number * 0.02, seconds=None)
        for minute in range(1, limit + 1):
            plane.timeline.run(minute * MINUTE)
            looks.append({"minute": minute, "states": plane.states(), "denied": plane.sagemaker.denials})
    attempts = Counter(job.attempt for job in plane.jobs())
    facts = {
        "load": {"jobs": jobs, "denied_minutes": minutes},
        "looks": looks,
        "attempts": dict(attempts),
        "created": {
            "accepted": len(plane.sagemaker.stub.creates),
            "first attempts": len(set(plane.names).intersection(plane.sagemaker.stub.creates)),
        },
        "notices": plane.account.notices,
        **plane.facts(),
    }
    played = Played(facts)
    failed = [look["minute"] for look in looks if look["states"].get("failed")]
    played.check("no job fails, at any minute", expected=[], actual=failed)
    held_back = looks[minutes - 1]["states"]
    played.check("all wait while starts are denied", expected={"pending": jobs}, actual=held_back)
    played.check(f"all run within {limit} minutes", expected={"running": jobs}, actual=looks[-1]["states"])
    played.at_most("denied tries", MOST_DENIED_TRIES, plane.sagemaker.denials)
    played.one_create_each(jobs)
    played.check("no start is charged", expected={0: jobs}, actual=dict(attempts))
    played.nothing_killed()
    return played
