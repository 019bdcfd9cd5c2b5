"""Handle an alarm of a job's GPUs that changed state: find its job, and read what is true now."""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.monitoring import alarm_reactions
from trainmaster.core.monitoring.alarms import Watched, alarm_name, watched_by
from trainmaster.core.policy.governance import Watch
from trainmaster.ports import AlarmReader, Clock, JobReader, JobStore, PolicyStore
from trainmaster.services.job_steps import change_job
from trainmaster.services.policy_in_force import policy_in_force

MOST_CHARACTERS = 256 * 1024
"""Most characters of a message of SNS."""


def watched_in(message: str, *, stack: str, account_id: str) -> Watched | None:
    """Return what an alarm message is about; None unless it is an acting alarm of this stack and account.

    The message only says where to look, as anybody who may publish to the topic can write one.
    """
    content = _content(message)
    if content is None or content.get("AWSAccountId") != account_id:
        return None
    name = content.get("AlarmName")
    watched = watched_by(name, stack=stack) if isinstance(name, str) else None
    return None if watched is None or watched.part is not None else watched


def _content(message: str) -> dict[str, Any] | None:
    if len(message) > MOST_CHARACTERS:
        return None
    try:
        content: Any = json.loads(message)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleWatch:
    alarms: AlarmReader
    reader: JobReader
    store: JobStore
    policies: PolicyStore
    clock: Clock
    stack: str

    def look(self, watched: Watched) -> str | None:
        """Read the alarm again and record its state.

        Returns the pool to wake, None if nothing changed.
        """
        alias = self.reader.alias(watched.training_job_name)
        if alias is None:
            return None
        watch = policy_in_force(self.policies, self.clock()).policy.governing.watch
        read, step = partial(self.reader.job, alias.job), partial(self._heard, watched, watch)
        change = change_job(read(), step, read=read, store=self.store, clock=self.clock)
        return None if change is None else change.after.spec.pool

    def _heard(self, watched: Watched, watch: Watch, job: Job) -> Change | None:
        if not _is_live_attempt(job, watched.training_job_name):
            return None
        name = alarm_name(self.stack, watched.kind, watched.training_job_name)
        after = alarm_reactions.heard(job, watched.kind, self.alarms.reading(name), watch, now=self.clock())
        return None if after == job else Change(before=job, after=after)


def _is_live_attempt(job: Job, training_job_name: str) -> bool:
    """Tell whether this attempt is the live one, and still runs as far as is known."""
    return (
        alarm_reactions.is_watched(job)
        and job.live is not None
        and job.live.training_job_name == training_job_name
    )
