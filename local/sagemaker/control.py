"""What a test may do to training jobs that no call of the API does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local.clock import TwinClock
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.mailbox import Fail, Interrupt
from local.sagemaker.runs import Runs
from local.sagemaker.statuses import Secondary
from local.sagemaker.table import JobTable
from local.sagemaker.views import record
from local.wire import AwsError

_HAS_INSTANCES = frozenset({Secondary.DOWNLOADING, Secondary.TRAINING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    table: JobTable
    runs: Runs
    clock: TwinClock

    def fail(self, training_job: str, reason: str | None = None, exit_code: int | None = None) -> None:
        """The job ends as Failed with this reason, or without one as after a container's exit code."""
        job = self.table.get(training_job)
        if job.is_final:
            raise AwsError("ValidationException", f"Training job {training_job} has ended.")
        self.runs.post(training_job, Fail(reason=reason or f"AlgorithmError: , exit code: {exit_code or 1}"))

    def spot(self, training_job: str, action: str) -> None:
        actions: Mapping[str, Callable[[TrainingJob], None]] = {"interrupt": self._interrupt}
        if action not in actions:
            raise AwsError("ValidationException", f"action is one of {', '.join(actions)}, not {action}")
        actions[action](self.table.get(training_job))

    def training_jobs(self) -> list[dict[str, Any]]:
        """In the order of their creation."""
        now = self.clock.now()
        return [record(job, self.runs.pids(job.name), now=now) for job in self.table.all()]

    def _interrupt(self, job: TrainingJob) -> None:
        if not job.spec.is_spot:
            raise AwsError("ValidationException", f"Training job {job.name} is no managed spot job.")
        if job.secondary not in _HAS_INSTANCES:
            raise AwsError(
                "ValidationException", f"Training job {job.name} has no instances: {job.secondary.value}."
            )
        self.runs.post(job.name, Interrupt())
