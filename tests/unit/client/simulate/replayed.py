"""Past jobs and policies with sensible defaults, and replays of them; a test sets only what it is about."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.core.policy import Policy, parse_policy
from trainmaster_client.simulate.engine.past_jobs import Break, History, PastJob
from trainmaster_client.simulate.engine.replays import Replay, ReplayedAttempt
from trainmaster_client.simulate.io.replaying import replay

BEGIN = datetime(2026, 10, 1, tzinfo=UTC)
G5 = "ml.g5.xlarge"
LOW, NORMAL, HIGH = 0, 100, 200


def instant(second: float) -> datetime:
    return BEGIN + timedelta(seconds=second)


def job(name: str, *, at: float = 0, trains: float = 1000, **fields: Any) -> PastJob:
    """On one ml.g5.xlarge; durations are seconds."""
    saves, breaks = fields.pop("saves", None), fields.pop("breaks", ())
    given: dict[str, Any] = {
        "name": name,
        "team": "vision",
        "submitted_by": "ann",
        "submitted_at": instant(at),
        "pool": None,
        "instances": {G5: fields.pop("n", 1)},
        "capacity_type": "on-demand",
        "priority": NORMAL,
        "max_runtime": timedelta(days=1),
        "trains_for": timedelta(seconds=trains),
        "end": "completed",
        "saves_every": None if saves is None else timedelta(seconds=saves),
        "breaks": tuple(Break(after=timedelta(seconds=after), code=code) for after, code in breaks),
    }
    return PastJob(**given | fields)


def history(*jobs: PastJob) -> History:
    return History(source="test", begins=BEGIN, jobs=jobs)


def policy(
    capacity: int | dict[str, int] = 2, *, teams: Iterable[dict[str, Any]] = (), **pool: Any
) -> Policy:
    """One pool of ml.g5.xlarge in which waiting is worth nothing."""
    counts = {G5: capacity} if isinstance(capacity, int) else capacity
    document: dict[str, Any] = {"name": "g1", "capacity": counts, "order": {"aging": "off"}} | pool
    rest = document.pop("rest", {})
    return parse_policy({"version": 1, "pools": [document], "teams": list(teams)} | rest)


def attempts(found: Replay) -> dict[tuple[str, int], ReplayedAttempt]:
    return {(one.job, one.attempt): one for one in found.attempts}


def replayed(*jobs: PastJob, policy: Policy) -> dict[tuple[str, int], ReplayedAttempt]:
    return attempts(replay(history(*jobs), policy, label="a"))


def times(one: ReplayedAttempt) -> tuple[int, int, int, str]:
    """Start, training, end, and how it ended."""
    return (one.start_s, one.train_s, one.end_s, one.end)
