"""Use and money by team, user, job, day or model: lines of the ledger under the key that they belong to.

A job counts whole, at one instant: when it ended; while it has not, when it started. So days add up to what
their jobs add up to, and a job that ran through midnight is not in two of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from trainmaster.core.costs.ledger import UsageLine, month_of
from trainmaster.core.jobs.model import Job

MODEL_NAME = "model_name"
"""Tag, or hyperparameter, that says what is trained."""
LONGEST_ATTEMPT = timedelta(days=31)
"""A line is in the month of its attempt's claim: that may be so long before the job's end."""


class GroupBy(StrEnum):
    TEAM = "team"
    USER = "user"
    JOB = "job"
    DAY = "day"
    MODEL_NAME = "model_name"

    @property
    def needs_jobs(self) -> bool:
        """The ledger has no more than team and name."""
        return self not in {GroupBy.TEAM, GroupBy.JOB}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamLine:
    """A line, and whose it is."""

    team: str
    month: str
    line: UsageLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    by: GroupBy
    jobs: Mapping[str, Job]
    """Those that were read, by name."""
    models: Mapping[str, str]
    """By job; of those that name one."""

    def key(self, one: TeamLine) -> str | None:
        """None: it is not known, or was not read."""
        job = self.jobs.get(one.line.job)
        match self.by:
            case GroupBy.TEAM:
                return one.team
            case GroupBy.JOB:
                return one.line.job
            case GroupBy.USER:
                return job.spec.submitted_by if job else None
            case GroupBy.DAY:
                return counted_at(job).date().isoformat() if job else None
            case GroupBy.MODEL_NAME:
                return self.models.get(one.line.job)

    def grouped(self, lines: Iterable[TeamLine]) -> dict[str | None, UsageLine]:
        """Sums by key, in the order of the keys; what has none comes last."""
        sums: dict[str | None, UsageLine] = {}
        for one in lines:
            key = self.key(one)
            sums[key] = sums.get(key, UsageLine(job=key or "")) + one.line
        return dict(sorted(sums.items(), key=lambda item: (item[0] is None, item[0] or "")))


def counted_at(job: Job) -> datetime:
    return (job.ended_at or job.started_at or job.spec.submitted_at).astimezone(UTC)


def is_within(one: TeamLine, job: Job | None, since: datetime, until: datetime) -> bool:
    """A job whose row is gone counts with the first instant of its month."""
    at = counted_at(job) if job else datetime.fromisoformat(f"{one.month}-01").replace(tzinfo=UTC)
    return since <= at < until


def months_between(since: datetime, until: datetime) -> tuple[str, ...]:
    """Whose ledgers may have lines of jobs that ended in the time."""
    months, at = list[str](), since - LONGEST_ATTEMPT
    while at < until + LONGEST_ATTEMPT:
        months.append(month_of(at))
        at += timedelta(days=1)
    return tuple(dict.fromkeys(month for month in months if month <= month_of(until)))


def model_of(request: Mapping[str, Any]) -> str | None:
    """The tag goes before the hyperparameter; an empty one says nothing."""
    tags = {tag.get("Key"): tag.get("Value") for tag in request.get("Tags") or () if isinstance(tag, dict)}
    parameters = request.get("HyperParameters")
    written = parameters.get(MODEL_NAME) if isinstance(parameters, dict) else None
    found = tags.get(MODEL_NAME) or written
    return found if isinstance(found, str) and found else None
