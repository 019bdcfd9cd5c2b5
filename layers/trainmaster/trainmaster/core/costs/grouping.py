"""Add up use and cost by team, user, job, day or model, from the lines of the ledger.

A job counts whole, at one instant: when it ended, or when it started while it has not ended. So days add up
to what their jobs add up to, and a job that ran through midnight is not in two of them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from trainmaster.core.costs.ledger import UsageLine, month_of
from trainmaster.core.jobs.model import Job

MODEL_NAME = "model_name"
"""Key of the tag, or name of the hyperparameter, that tells which model is trained."""
LONGEST_ATTEMPT = timedelta(days=31)
"""Longest time from an attempt's claim to its job's end. A ledger line is in the month of the claim, so a
range of ends has its lines in months that begin this much earlier."""


class GroupBy(StrEnum):
    TEAM = "team"
    USER = "user"
    JOB = "job"
    DAY = "day"
    MODEL_NAME = "model_name"
    ARRAY = "array"
    """The array that the job is a task of; a job that is none has no key."""

    @property
    def needs_jobs(self) -> bool:
        """Tell whether the key is in the jobs' rows: the ledger itself knows only team and job name."""
        return self not in {GroupBy.TEAM, GroupBy.JOB}


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamLine:
    """A line of a team's monthly ledger."""

    team: str
    month: str
    line: UsageLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    by: GroupBy
    jobs: Mapping[str, Job]
    """The jobs whose rows were read, by name."""
    models: Mapping[str, str]
    """Model name by job name, only of jobs that name a model."""

    def key(self, team_line: TeamLine) -> str | None:
        """Return the group that a line belongs to; None if it is not known, or the job was not read."""
        job = self.jobs.get(team_line.line.job)
        match self.by:
            case GroupBy.TEAM:
                return team_line.team
            case GroupBy.JOB:
                return team_line.line.job
            case GroupBy.ARRAY:
                return job.spec.array.name if job is not None and job.spec.array is not None else None
            case GroupBy.USER:
                return job.spec.submitted_by if job else None
            case GroupBy.DAY:
                return counted_at(job).date().isoformat() if job else None
            case GroupBy.MODEL_NAME:
                return self.models.get(team_line.line.job)

    def grouped(self, lines: Iterable[TeamLine]) -> dict[str | None, UsageLine]:
        """Add the lines up by key, in the order of the keys; lines without a key come last."""
        sums: dict[str | None, UsageLine] = {}
        for team_line in lines:
            key = self.key(team_line)
            sums[key] = sums.get(key, UsageLine(job=key or "")) + team_line.line
        return dict(sorted(sums.items(), key=lambda item: (item[0] is None, item[0] or "")))


def counted_at(job: Job) -> datetime:
    return (job.ended_at or job.started_at or job.spec.submitted_at).astimezone(UTC)


def is_within(team_line: TeamLine, job: Job | None, since: datetime, until: datetime) -> bool:
    """Tell whether a line counts in ``since <= t < until``.

    A job whose row is gone counts at its month's begin.
    """
    at = counted_at(job) if job else datetime.fromisoformat(f"{team_line.month}-01").replace(tzinfo=UTC)
    return since <= at < until


def months_between(since: datetime, until: datetime) -> tuple[str, ...]:
    """Return the months (``YYYY-MM``) whose ledgers may have lines of jobs that ended in this time."""
    months, at = list[str](), since - LONGEST_ATTEMPT
    while at < until + LONGEST_ATTEMPT:
        months.append(month_of(at))
        at += timedelta(days=1)
    return tuple(dict.fromkeys(month for month in months if month <= month_of(until)))


def model_of(request: Mapping[str, Any]) -> str | None:
    """Return the model's name in a CreateTrainingJob request, from its tag or else its hyperparameter."""
    tags = {tag.get("Key"): tag.get("Value") for tag in request.get("Tags") or () if isinstance(tag, dict)}
    parameters = request.get("HyperParameters")
    written = parameters.get(MODEL_NAME) if isinstance(parameters, dict) else None
    model = tags.get(MODEL_NAME) or written
    return model if isinstance(model, str) and model else None
