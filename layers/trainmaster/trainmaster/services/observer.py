"""Record what SageMaker says about a job, for the event handler and the reconciler; safe to repeat."""

from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from trainmaster.core.errors import NameTakenError, OutcomeUnknownError
from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import settlement, steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.decision import decide
from trainmaster.core.lifecycle.settlement import WARM_AVAILABLE
from trainmaster.core.outbox import to_tell, warm_pool_not_kept_notice, warm_pools_not_matched_notice
from trainmaster.core.outbox.texts.refusals import PlatformSubject
from trainmaster.ports import Clock, JobReader, JobStore, TrainingApi, TrainingJobList
from trainmaster.services.end_policy import EndPolicy
from trainmaster.services.job_steps import change_job
from trainmaster.services.scheduler.creation import TAGS_WITHIN, adoptable
from trainmaster.services.scheduler.start_protocol import pool_left

NAME_TAKEN = Reason(
    code=ReasonCode.NAME_TAKEN, message="a training job that is not ours has the attempt's name"
)


MISSED_UNTIL_TOLD = 3
"""Starts in a row that missed the warm pool they were claimed with, before operators are notified."""
GONE_AFTER = timedelta(minutes=5)
"""How long a training job must be missing, and not listed, before it counts as deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observer:
    store: JobStore
    reader: JobReader
    training: TrainingApi
    end_policy: EndPolicy
    clock: Clock
    listing: TrainingJobList | None = None
    """Lists training jobs; None without that right, and then a missing job leads to no conclusion."""

    def hear(self, training_job_name: str) -> str | None:
        """Record news of a training job. Returns the pool to wake, None if nothing changed.

        News of other people's jobs, of earlier attempts and of ended jobs change nothing.
        """
        alias = self.reader.alias(training_job_name)
        if alias is None:
            return None
        job = self.reader.job(alias.job)
        if job is None or job.spec.entry_id != alias.entry_id or job.attempt != alias.attempt:
            return None
        return self.look(job)

    def look(self, job: Job) -> str | None:
        """Compare a job with SageMaker. Returns the pool to wake, None if nothing changed."""
        change = self._note(job)
        if change is not None and _settles_reuse(change):
            self._count_reuse(change)
        if change is not None and (_settles_reuse(change) or _was_missing(change)):
            change = self._note(change.after) or change
        if change is not None and change.keeps_nothing:
            self._tell_operators(change)
        return None if change is None else job.spec.pool

    def _tell_operators(self, change: Change) -> None:
        """Notify operators once a pool and type, as quotas are by type; the next end makes up for a crash."""
        assert change.ended is not None, change
        pool, job = change.after.spec.pool, change.after.name
        (capacity,) = change.ended.vector
        subject = f"{PlatformSubject.WARM_POOLS_NOT_KEPT}:{capacity.instance_type}"
        notice = warm_pool_not_kept_notice(change.ended, job=job)
        message = to_tell(notice, cause=f"{pool}#{subject}", at=self.clock())
        self.store.leave_once(pool, message, subject=subject)

    def _count_reuse(self, change: Change) -> None:
        """Count starts that miss their warm pool in a row: their keys are wrongly taken for equal."""
        pool = change.after.spec.pool
        missed = self.store.count_missed_warm_pool(pool, missed=change.leaves_warm is not None)
        if missed >= MISSED_UNTIL_TOLD:
            subject = PlatformSubject.WARM_POOLS_NOT_MATCHED
            notice = warm_pools_not_matched_notice(pool, missed)
            message = to_tell(notice, cause=f"{pool}#{subject}", at=self.clock())
            self.store.leave_once(pool, message, subject=subject)

    def _note(self, job: Job) -> Change | None:
        """Record news of the attempt that is live now."""

        def step(current: Job) -> Change | None:
            return self._news_of(current) if current.is_live and current.attempt == job.attempt else None

        read = partial(self.reader.job, job.name)
        return change_job(job, step, read=read, store=self.store, clock=self.clock)

    def _news_of(self, job: Job) -> Change | None:
        if job.live_attempt.training_job_arn is None:
            return self._news_of_claim(job)
        seen = self.training.describe(job.live_attempt.training_job_name)
        if seen is None:
            return self._news_of_missing(job)
        if job.live_attempt.missing_since is not None:
            return Change(before=job, after=steps.found_again(job))
        if _forgot_to_stop(job, seen):
            return Change(before=job, after=steps.stop_told(job, told=False))
        return self._news_of_attempt(job, seen)

    def _news_of_attempt(self, job: Job, seen: Observation | None) -> Change | None:
        """Record first whether the attempt got its warm pool, which is not checked after its end."""
        if job.live_attempt.claim.reuses is not None:
            left = pool_left(job, self.training)
            if _has_instances(seen) or _was_taken(left):
                return steps.reuse_settled(job, left)
        if seen is not None and not seen.has_ended:
            return self._progress(job, seen)
        now = self.clock()
        facts = self.end_policy.gather(job, seen, now=now)
        return None if facts is None else settlement.settled(job, decide(facts, now=now), seen, now=now)

    def _news_of_missing(self, job: Job) -> Change | None:
        """Keep a missing attempt live, with its instances, until it is certain that it is gone."""
        now, live = self.clock(), job.live_attempt
        if live.missing_since is None:
            return Change(before=job, after=steps.missing(job, since=now))
        if now - live.missing_since < GONE_AFTER or self.listing is None:
            return None
        if self.listing.is_listed(live.training_job_name, created=live.claim.at):
            return None
        return self._news_of_attempt(job, None)

    def _progress(self, job: Job, seen: Observation) -> Change | None:
        now = self.clock()
        after = steps.progressed(job, seen, now=now)
        # One step at a time: whether a start that is seen only now leaves spot, the next look decides.
        if job.state is JobState.RUNNING:
            after = self.end_policy.progress(after, seen, now=now)
        return None if after == job else Change(before=job, after=after)

    def _news_of_claim(self, job: Job) -> Change | None:
        """Settle a claim whose create was not recorded.

        Adopt what exists; if nothing does, give the slot back once the lease is over. A name that is used by
        another needs no lease, as a create with it is refused.
        """
        now = self.clock()
        try:
            arn = adoptable(job, self.training, now=now)
        except OutcomeUnknownError:
            return None
        except NameTakenError:
            if now - job.live_attempt.claim.at < TAGS_WITHIN:
                return None
            failed = steps.failed(job, reason=NAME_TAKEN, now=now)
            return steps.claim_undone(job, failed, pool_left(job, self.training))
        if arn is not None:
            return self._news_of_attempt(job, self.training.describe(job.live_attempt.training_job_name))
        if job.state is JobState.STOPPING:
            return self._unless_leased(job, steps.never_created(job, now=now))
        return self._unless_leased(job, steps.unclaimed(job))

    def _unless_leased(self, job: Job, after: Job) -> Change | None:
        if self.clock() < job.live_attempt.claim.lease_until:
            return None
        return steps.claim_undone(job, after, pool_left(job, self.training))


def _has_instances(seen: Observation | None) -> bool:
    """Tell whether SageMaker has assigned instances, and so decided which warm pool is used."""
    return seen is None or seen.training_since is not None or seen.has_ended


def _was_taken(left: Observation | None) -> bool:
    """Tell whether some attempt took the warm pool, or it is gone: it holds no instances then."""
    return left is not None and left.warm_status != WARM_AVAILABLE


def _settles_reuse(change: Change) -> bool:
    """Tell whether the change settles a reuse; other news of the attempt may still be open."""
    before, after = change.before.live, change.after.live
    return before is not None and after is not None and before.claim.reuses != after.claim.reuses


def _was_missing(change: Change) -> bool:
    """Tell whether the attempt had been missing; other news of it may still be open."""
    before, after = change.before.live, change.after.live
    return before is not None and before.missing_since is not None and after is not None


def _forgot_to_stop(job: Job, seen: Observation) -> bool:
    """Tell whether SageMaker runs the job on although it was sent a stop."""
    return job.live_attempt.stop_sent and seen.status == "InProgress"
