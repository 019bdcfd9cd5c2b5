"""Pauses of starts with a role that AWS refuses: its jobs wait, and one at a time, in turn, is retried."""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.planning import wait_reasons
from trainmaster.core.planning.refusal_records import RoleStarts, starts_key
from trainmaster.core.planning.snapshot import PreemptionReservation, Snapshot, WaitingJob


@dataclass(kw_only=True)
class StartPauses:
    """The pauses as one plan knows them."""

    snapshot: Snapshot
    pool: str
    now: datetime
    probing: dict[str, WaitingJob] = field(default_factory=dict)
    """The job that is tried again in this plan, by the key of its role's starts."""
    deferred: list[WaitingJob] = field(default_factory=list)
    """Jobs that were refused more often than others of their role, which go first."""
    is_last_round: bool = False
    """Whether no job is deferred any more."""

    def key_of(self, job: WaitingJob) -> str | None:
        """Return the key of the paused starts that the job's belong to; None if they do not pause."""
        if not self._paused or job.role is None:
            return None
        key = starts_key(job.role, self.snapshot.launchers.get(job.team))
        return key if key in self._paused else None

    def holds_back(self, job: WaitingJob) -> Reason | None:
        """Return why the job may not even be tried.

        None if its role's starts do not pause, or it is to be tried.

        The job that was refused least often is tried first. Otherwise one job that AWS will never accept,
        whatever it accepts from others, could be tried each time, and the pause would not end.
        """
        key = self.key_of(job)
        if key is None:
            return None
        role = self._paused[key]
        if key in self.probing:
            return wait_reasons.trying(role, self.pool, self.probing[key], to=job.team)
        assert role.pause is not None, role
        if role.pause.next_probe_at > self.now:
            return wait_reasons.starts_paused(role, self.pool, to=job.team)
        # The least refused job may not fit now; then the last round gives its turn to one of the others.
        if (job.turned_down or 0) > self._fewest[key] and not self.is_last_round:
            self.deferred.append(job)
            return wait_reasons.starts_paused(role, self.pool, to=job.team)
        return None

    def why_not_yet(self, job: WaitingJob) -> Reason | None:
        """Explain a job that was to be tried and did not fit; None if its role's starts do not pause."""
        key = self.key_of(job)
        return None if key is None else wait_reasons.starts_paused(self._paused[key], self.pool, to=job.team)

    def tries(self, job: WaitingJob) -> str | None:
        """Let the job be the one that is tried.

        Return the key of its role's starts, None if they do not pause.
        """
        key = self.key_of(job)
        if key is not None:
            self.probing[key] = job
        return key

    def last_round(self) -> list[WaitingJob]:
        """Return the deferred jobs, the least refused first, as no job before them fitted."""
        self.is_last_round = True
        return sorted(self.deferred, key=lambda job: job.turned_down or 0)

    @cached_property
    def _paused(self) -> dict[str, RoleStarts]:
        return {key: role for key, role in self.snapshot.role_starts.items() if role.pause is not None}

    @cached_property
    def _fewest(self) -> dict[str, int]:
        """Refusals of the least refused job of each role, of those that may be tried now."""
        refusals: defaultdict[str, list[int]] = defaultdict(list)
        for job in self.snapshot.waiting:
            if (key := self.key_of(job)) is not None:
                refusals[key].append(job.turned_down or 0)
        return {key: min(counts) for key, counts in refusals.items()}


def kept_for_paused(snapshot: Snapshot, pauses: StartPauses) -> list[PreemptionReservation]:
    """Return reservations of jobs whose starts pause: while AWS refuses those, others use the instances."""
    paused = {job.name for job in snapshot.waiting if pauses.key_of(job) is not None}
    return [hold for hold in snapshot.holds if hold.preemptor in paused]
