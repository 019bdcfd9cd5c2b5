"""The history itself, as a replay: each attempt as it really went, to compare with."""

from datetime import timedelta

from trainmaster_client.simulate.engine.past_jobs import INTERRUPTED, History, PastAttempt, PastJob
from trainmaster_client.simulate.engine.replays import ON_PLAN, RESIZED, Replay, ReplayedAttempt
from trainmaster_client.simulate.engine.runs import SECOND

RECORDED = "recorded"
NO_POOL = "-"
"""Pool of jobs whose pool the history does not tell."""
_ENDS = {
    "completed": "completed",
    "preemption": "preempted",
    "window": "preempted",
    "spot-fallback": INTERRUPTED,
    "max-runtime": "stopped",
    "max-wait": "stopped",
    "stopped-by-user": "stopped",
    "stopped-outside": "stopped",
    "deleted-outside": "stopped",
    "idle": "stopped",
    "idle-requeue": "stopped",
    "underused-requeue": "stopped",
    "loss-not-finite": "stopped",
    "loss-diverged": "stopped",
    "loss-plateau": "stopped",
    "shrink": RESIZED,
    "grow": RESIZED,
    "max-runtime-at-width": RESIZED,
}
"""Name of an attempt's end by its code; every other code is of a failure."""


def recorded(history: History) -> Replay:
    """Replay the history as it went; jobs whose attempts the source does not give are not in it.

    An attempt on several types counts under all their names. Who was preempted for whom is not known here.
    """
    replay = Replay(policy=RECORDED, capacity={})
    for job in history.jobs:
        replay.attempts += [
            _row(history, job, number, attempt) for number, attempt in enumerate(job.attempts)
        ]
    replay.attempts.sort(key=lambda row: (row.end_s, row.job, row.attempt))
    unknown = sum(not job.attempts for job in history.jobs)
    if unknown:
        replay.notes.append(f"How {unknown} of {len(history.jobs)} jobs went is not in the history.")
    return replay


def _row(history: History, job: PastJob, number: int, attempt: PastAttempt) -> ReplayedAttempt:
    start_s = (attempt.started_at - history.begins) // SECOND
    ended = attempt.ended_at or attempt.training_since or attempt.started_at
    end_s = (ended - history.begins) // SECOND
    train_s = end_s if attempt.training_since is None else (attempt.training_since - history.begins) // SECOND
    return ReplayedAttempt(
        job=job.name,
        attempt=number,
        pool=job.pool or NO_POOL,
        instance_type="+".join(sorted(job.instances)),
        capacity_type=job.capacity_type if attempt.plan is None else f"{ON_PLAN}{attempt.plan}",
        instances=attempt.instances or sum(job.instances.values()),
        start_s=start_s,
        train_s=train_s,
        end_s=end_s,
        end="live" if attempt.end is None else _ENDS.get(attempt.end, "failed"),
        lost_s=attempt.lost // SECOND,
        warm=bool(attempt.warm),
        stopping_s=(attempt.stopped_in or timedelta()) // SECOND,
    )
