"""An idle alarm changed state: which job it is about, and what is true of it now."""

import json
from dataclasses import dataclass
from typing import Any

from trainmaster import lifecycle
from trainmaster.errors import LostRaceError
from trainmaster.jobs import (
    Job,
    JobState,
)
from trainmaster.ports import AlarmReader, Change, Clock, JobReader, JobStore

KIND = "idle"
TRIES = 5


def alarm_name(stack: str, training_job_name: str) -> str:
    return f"trainmaster-{stack}-{KIND}-{training_job_name}"


def training_job_of(message: str, *, stack: str, account_id: str) -> str | None:
    """The training job an alarm message is about; None unless it is an idle alarm of this stack and account.

    The message says no more than where to look: anybody who may publish can write one.
    """
    try:
        content: Any = json.loads(message)
    except ValueError:
        return None
    if not isinstance(content, dict) or content.get("AWSAccountId") != account_id:
        return None
    name, prefix = content.get("AlarmName"), alarm_name(stack, "")
    if not isinstance(name, str) or not name.startswith(prefix):
        return None
    return name.removeprefix(prefix) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleWatch:
    alarms: AlarmReader
    reader: JobReader
    store: JobStore
    clock: Clock
    stack: str

    def look(self, training_job_name: str) -> str | None:
        """Read the alarm again and write down what it says.

        Returns the pool to wake, None when nothing changed.
        """
        alias = self.reader.alias(training_job_name)
        if alias is None:
            return None
        for _ in range(TRIES):
            job = self.reader.job(alias.job)
            if job is None or not _runs(job, training_job_name):
                return None
            since = self.alarms.in_alarm_since(alarm_name(self.stack, training_job_name))
            assert job.live is not None
            if since == job.live.idle_since:
                return None
            try:
                change = Change(before=job, after=lifecycle.idle(job, since=since))
                self.store.commit([change], at=self.clock())
            except LostRaceError:
                continue
            return job.spec.pool
        raise LostRaceError(f"{alias.job} kept changing while its alarm was looked at")


def _runs(job: Job, training_job_name: str) -> bool:
    """Not while it is being stopped anyway, and not for an earlier attempt."""
    return (
        job.state is JobState.RUNNING
        and job.live is not None
        and job.live.training_job_name == training_job_name
    )
