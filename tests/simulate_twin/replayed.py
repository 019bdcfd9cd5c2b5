"""A recording replayed under the very policy, and how close its starts come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.core.policy import parse_policy
from trainmaster_client.report import Report
from trainmaster_client.simulate.engine.past_jobs import History
from trainmaster_client.simulate.histories.export_lines import read_lines
from trainmaster_client.simulate.histories.exported_history import exported_history
from trainmaster_client.simulate.io.replaying import replay

from tests.simulate_twin.comparison import (
    LEAST_SHARE,
    TOLERANCE_S,
    Deviation,
    deviations,
    guess,
    line_of,
    share_close,
    worst,
)
from tests.simulate_twin.recorded_starts import Start, starts_of
from tests.simulate_twin.recordings import Recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    recording: Recording
    twin: Sequence[Start]
    replay: Sequence[Start]
    befell: Mapping[str, str]
    """By job, what happened to it in the twin that a replay may not know."""

    @property
    def attempts(self) -> list[Deviation]:
        return deviations(self.twin, self.replay)

    @property
    def jobs(self) -> list[Deviation]:
        """Their first starts."""
        return [one for one in self.attempts if one.attempt == 0]


def replayed(recording: Recording, *, policy: Mapping[str, Any] | None = None) -> Replayed:
    """``policy``: another one than the twin had."""
    read_at = datetime.fromisoformat(recording.read_at)
    lines = read_lines(recording.exported, where=recording.name)
    history = exported_history(lines, source=f"twin, {recording.name}", read_at=read_at)
    found = replay(history, parse_policy(dict(policy or recording.policy)), label="as it was", until=read_at)
    return Replayed(
        recording=recording,
        twin=starts_of(recording.creations, begins=history.begins),
        replay=[Start(one.job, one.attempt, one.start_s) for one in found.attempts],
        befell=_befell(history),
    )


def _befell(history: History) -> dict[str, str]:
    found: dict[str, str] = {}
    for job in history.jobs:
        if job.breaks:
            found[job.name] = f"it broke off {len(job.breaks)} times ({job.breaks[0].code})"
        elif job.withdrawn_after is not None:
            found[job.name] = "its user stopped it while it waited"
        elif job.end != "completed":
            found[job.name] = f"it {job.end}"
        elif len(job.attempts) > 1:
            found[job.name] = f"it was preempted {len(job.attempts) - 1} times"
    return found


def check(report: Report, one: Replayed) -> None:
    """Two checks: the jobs' first starts, and the starts of all attempts."""
    name = one.recording.name
    for what, found in (("first starts of jobs", one.jobs), ("starts of all attempts", one.attempts)):
        share = round(share_close(found), 4)
        report.check(
            f"{name}: {what} within {TOLERANCE_S:g} s",
            expected=f">= {LEAST_SHARE}",
            actual=f"{share} of {len(found)}",
            ok=share >= LEAST_SHARE,
        )
    report.facts["runs"][name] = one.recording.as_json() | {
        "twin": [list(start) for start in one.twin],
        "replay": [list(start) for start in one.replay],
        "deviations": [far.as_json() for far in worst(one.attempts)],
    }


def worst_lines(one: Replayed) -> list[str]:
    found = one.attempts
    return [f"  {line_of(far, guess(far, found, one.befell))}" for far in worst(found)]
