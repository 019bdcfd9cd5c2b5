"""What the policy makes of news: reads it, and of a failure the traces, only where they are needed."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainmaster.core.diagnosis import FailureEvidence, diagnose
from trainmaster.core.jobs.model import Job, JobState
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.lifecycle import retries, spot_fallback, steps
from trainmaster.core.lifecycle.ending import trained_by
from trainmaster.core.lifecycle.ends import End
from trainmaster.core.lifecycle.retries import Failure
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.ports import JobReader, LogReader, PolicyStore

LEFT_TO_THE_EVENT = timedelta(minutes=1)
"""How long whoever may not read logs leaves a failure to whoever may: an event comes within seconds."""
NO_REASON = "it gave no reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    policies: PolicyStore
    reader: JobReader
    logs: LogReader | None
    """None: no right to read logs; FailureReason alone has to do."""
    tails: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The last log read, by training job."""

    def end(self, job: Job, end: End, seen: Observation | None, *, now: datetime) -> End | None:
        """An end of the table of ends as the policy has it; None: left to somebody who knows more."""
        if seen is not None and end.becomes is JobState.FAILED:
            if self._leaves_it(seen, now=now):
                return None
            end = self._failed(job, seen, now=now)
        if not spot_fallback.concern_end(job, end):
            return end
        return spot_fallback.at_end(job, end, seen, self._policy(), now=now)

    def progress(self, job: Job, seen: Observation, *, now: datetime) -> Job:
        """A job whose attempt runs: the spot rules may end that."""
        if not spot_fallback.concern(job):
            return job
        found = spot_fallback.verdict(job, seen, self._policy(), now=now)
        if found is None:
            return job
        if found.stays is None:
            return steps.leaves_spot(job, found.why)
        told = job.live is not None and job.live.spot.stays is not None
        return job if told else steps.stays_on_spot(job, found.stays)

    def _failed(self, job: Job, seen: Observation, *, now: datetime) -> End:
        traces = FailureEvidence(
            failure_reason=seen.failure_reason, log_tail=self._tail(seen.training_job_name)
        )
        diagnosis = diagnose(traces)
        failure = Failure(
            job=job,
            trained=trained_by(seen.ended_at or now, job.live_attempt, seen),
            text=seen.failure_reason or NO_REASON,
            diagnosis=diagnosis,
            hyperparameters=self._hyperparameters(job) if retries.may_halve(job, diagnosis) else {},
        )
        return retries.judged(failure, self._policy().governing.recovery)

    def _leaves_it(self, seen: Observation, *, now: datetime) -> bool:
        recent = seen.ended_at is not None and now - seen.ended_at < LEFT_TO_THE_EVENT
        return recent and self.logs is None

    def _tail(self, training_job_name: str) -> tuple[str, ...]:
        """Read once, however often the look at the job is repeated."""
        if self.logs is None:
            return ()
        if training_job_name not in self.tails:
            self.tails.clear()
            self.tails[training_job_name] = self.logs.tail(training_job_name)
        return self.tails[training_job_name]

    def _hyperparameters(self, job: Job) -> dict[str, str]:
        """Of the live attempt."""
        return {**self.reader.request(job.name).get("HyperParameters", {}), **job.rewritten}

    def _policy(self) -> Policy:
        return parse_policy(self.policies.current().document)
