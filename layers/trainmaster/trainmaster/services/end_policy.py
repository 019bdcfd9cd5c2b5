"""Gather the facts by which the end of an attempt, or its stay on spot, is decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from trainmaster.core.costs.spot_record import record_of
from trainmaster.core.diagnosis import FailureEvidence, diagnose
from trainmaster.core.errors import NameTakenError, RowSetAsideError
from trainmaster.core.jobs.failures import Diagnosis
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.lifecycle import retries, spot_fallback
from trainmaster.core.lifecycle.decision import EndFacts, Question, questions
from trainmaster.core.policy import Policy
from trainmaster.core.request.request import attempt_name
from trainmaster.ports import JobReader, LogReader, PolicyStore, SpotReader, TrainingApi
from trainmaster.services.policy_in_force import policy_in_force
from trainmaster.services.scheduler.creation import adoptable

LEFT_TO_THE_EVENT = timedelta(minutes=1)
"""How long a function without the right to read logs leaves a failure to the event handler, which has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPolicy:
    policies: PolicyStore
    reader: JobReader
    training: TrainingApi
    logs: LogReader | None
    """Reader of logs; None without that right, and then only FailureReason is known."""
    spot: SpotReader | None = None
    """Reader of the records of spot instances; None: they do not count."""
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The last log read, by training job."""

    def gather(self, job: Job, seen: Observation | None, *, now: datetime) -> EndFacts | None:
        """Gather what decides about an ended attempt; None if it is left to a function with more rights."""
        unanswered = questions(job, seen)
        facts = EndFacts(job=job, seen=seen)
        if Question.HAS_LATER_ATTEMPT in unanswered:
            return replace(facts, has_later_attempt=self._has_later_attempt(job, now=now))
        if seen is not None and Question.IS_RETRIED in unanswered:
            if self._leaves_it(seen, now=now):
                return None
            diagnosis = self._diagnosis(seen)
            hyperparameters = self._hyperparameters(job, diagnosis)
            facts = replace(facts, diagnosis=diagnosis, hyperparameters=hyperparameters)
        if not unanswered:
            return facts
        policy = self._policy(now)
        is_asked = Question.LEAVES_SPOT in unanswered
        return replace(
            facts, policy=policy, spot_records=self._records(job, policy, now=now) if is_asked else {}
        )

    def progress(self, job: Job, seen: Observation, *, now: datetime) -> Job:
        """Apply the spot rules to a job whose attempt runs; they may end its stay on spot."""
        if not spot_fallback.concern(job):
            return job
        policy = self._policy(now)
        records = self._records(job, policy, now=now)
        verdict = spot_fallback.verdict(job, seen, policy, now=now, records=records)
        if verdict is None:
            return job
        if verdict.stays is None:
            return spot_fallback.leaves_spot(job, verdict.why)
        is_noted = job.live is not None and job.live.spot.stays is not None
        return job if is_noted else spot_fallback.stays_on_spot(job, verdict.stays)

    def _records(self, job: Job, policy: Policy, *, now: datetime) -> spot_fallback.TypeRecords:
        """Read the records of the live attempt's instance types, where the policy counts them."""
        if self.spot is None or not policy.governing.spot.count_type:
            return {}
        types = {capacity.instance_type for capacity in job.live_attempt.vector}
        today = now.astimezone(UTC).date()
        return {name: record_of(self.spot.spot_days(name), today=today) for name in sorted(types)}

    def _leaves_it(self, seen: Observation, *, now: datetime) -> bool:
        recent = seen.ended_at is not None and now - seen.ended_at < LEFT_TO_THE_EVENT
        return recent and self.logs is None

    def _diagnosis(self, seen: Observation) -> Diagnosis:
        tail = self._tail(seen.training_job_name)
        return diagnose(FailureEvidence(failure_reason=seen.failure_reason, log_tail=tail))

    def _tail(self, training_job_name: str) -> tuple[str, ...]:
        """Read the log once, however often the look at the job is repeated."""
        if self.logs is None:
            return ()
        if training_job_name not in self.tails:
            self.tails.clear()
            self.tails[training_job_name] = self.logs.tail(training_job_name)
        return self.tails[training_job_name]

    def _hyperparameters(self, job: Job, diagnosis: Diagnosis) -> Mapping[str, str]:
        """Read the live attempt's hyperparameters if its batch may be halved; empty otherwise."""
        if not retries.may_halve(job, diagnosis):
            return {}
        try:
            body = self.reader.request(job.name)
        except RowSetAsideError:
            return {}  # its end is an end anyway; nothing is halved
        return {**body.get("HyperParameters", {}), **job.comebacks.rewritten}

    def _has_later_attempt(self, job: Job, *, now: datetime) -> bool:
        """Tell whether the next attempt exists already.

        Then the table was restored to a time before both, which explains a stop that was not requested.
        """
        number = job.attempt + 1
        name = attempt_name(job.name, job.spec.entry_id, number)
        later = replace(job, attempt=number, live=replace(job.live_attempt, training_job_name=name))
        try:
            return adoptable(later, self.training, now=now) is not None
        except NameTakenError:
            return False

    def _policy(self, now: datetime) -> Policy:
        return policy_in_force(self.policies, now).policy
