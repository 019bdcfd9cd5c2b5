"""Histories and replays written by hand: seconds after a Monday, 2026-01-05 00:00 UTC."""

from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster_client.simulate.comparison.comparisons import Comparison, compare
from trainmaster_client.simulate.engine.past_jobs import History, PastJob
from trainmaster_client.simulate.engine.replays import Replay, ReplayedAttempt, WarmInterval

BEGINS = datetime(2026, 1, 5, tzinfo=UTC)
TYPE = "ml.g5.12xlarge"
"""4 GPUs, 7.09 USD an hour."""


def job(name: str, team: str = "vision", *, at: int = 0, trains: int = 3600, **fields: Any) -> PastJob:
    values: dict[str, Any] = {
        "submitted_by": "ada",
        "pool": "g5",
        "instances": {TYPE: 1},
        "capacity_type": "on-demand",
        "priority": 0,
        "max_runtime": timedelta(days=1),
        "end": "completed",
        "saves_every": None,
    }
    return PastJob(
        name=name,
        team=team,
        submitted_at=BEGINS + timedelta(seconds=at),
        trains_for=timedelta(seconds=trains),
        **(values | fields),
    )


def history(*jobs: PastJob) -> History:
    return History(source="written by hand", begins=BEGINS, jobs=jobs)


def attempt(name: str, start: int, train: int, until: int, /, **fields: Any) -> ReplayedAttempt:
    values: dict[str, Any] = {
        "attempt": 0,
        "pool": "g5",
        "instance_type": TYPE,
        "capacity_type": "on-demand",
        "instances": 1,
        "end": "completed",
        "lost_s": 0,
        "warm": False,
    }
    return ReplayedAttempt(job=name, start_s=start, train_s=train, end_s=until, **(values | fields))


def replay(policy: str, *attempts: ReplayedAttempt, instances: int = 1, **fields: Any) -> Replay:
    return Replay(
        policy=policy,
        capacity={"g5": {"on-demand": {TYPE: instances}, "spot": {}}},
        attempts=list(attempts),
        **fields,
    )


def warm(since: int, until: int, instances: int = 1) -> WarmInterval:
    return WarmInterval(pool="g5", instance_type=TYPE, instances=instances, since_s=since, until_s=until)


def two_policies() -> Comparison:
    """One instance; ``big`` comes first, ``urgent`` half an hour later, ``small`` an hour later.

    The plain queue stops ``big`` for ``urgent`` and it loses its half hour; the other policy lets it end.
    """
    jobs = (
        job("big", "vision", at=0, trains=7200),
        job("urgent", "language", at=1800, trains=1800, priority=500),
        job("small", "vision", at=3600, trains=900),
    )
    plain = replay(
        "plain queue",
        attempt("big", 0, 240, 1890, end="preempted", lost_s=1560, preempted_by="urgent", stopping_s=90),
        attempt("urgent", 1890, 2130, 3930),
        attempt("big", 3930, 4170, 11370, attempt=1),
        attempt("small", 11370, 11610, 12510),
    )
    other = replay(
        "policy.yaml",
        attempt("big", 0, 240, 7440),
        attempt("urgent", 7440, 7470, 9270, warm=True),
        attempt("small", 9270, 9300, 10200, warm=True),
        warm=[warm(10200, 10800)],
    )
    return compare(history(*jobs), [plain, other])
