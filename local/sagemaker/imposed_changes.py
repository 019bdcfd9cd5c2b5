"""Changes that a test may make to training jobs and that no API call makes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from trainmaster.core.memory.accelerators import gpus

from local.clock import TwinClock
from local.sagemaker.hosts import hosts_of
from local.sagemaker.job_table import JobTable
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.loads import Load, Loads, trained_for
from local.sagemaker.mailbox import Fail, Interrupt
from local.sagemaker.runs import Runs
from local.sagemaker.slow_stops import SlowStops
from local.sagemaker.statuses import Secondary
from local.sagemaker.views import record
from local.wire import AwsError

_HAS_INSTANCES = frozenset({Secondary.DOWNLOADING, Secondary.TRAINING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    table: JobTable
    runs: Runs
    loads: Loads
    slow_stops: SlowStops
    clock: TwinClock

    def fail(self, training_job: str, reason: str | None = None, exit_code: int | None = None) -> None:
        """End the job as Failed with this reason, or without one as after a container's exit code."""
        job = self.table.get(training_job)
        if job.is_final:
            raise AwsError("ValidationException", f"Training job {training_job} has ended.")
        self.runs.post(training_job, Fail(reason=reason or f"AlgorithmError: , exit code: {exit_code or 1}"))

    def spot(self, training_job: str, action: str) -> None:
        actions: Mapping[str, Callable[[TrainingJob], None]] = {"interrupt": self._interrupt}
        if action not in actions:
            raise AwsError("ValidationException", f"action is one of {', '.join(actions)}, not {action}")
        actions[action](self.table.get(training_job))

    def slow_stop(self, training_job: str, seconds: float) -> None:
        """Make its stop take at least this many seconds of the twin's clock; 0 restores the usual."""
        job = self.table.get(training_job)
        if job.is_final:
            raise AwsError("ValidationException", f"Training job {training_job} has ended.")
        self.slow_stops.set(training_job, timedelta(seconds=seconds))

    def gpu(self, training_job: str, host: str | None, percent: float, from_minute: int | None) -> None:
        """Set how busy the GPUs of a host (None: of all) are, from a minute of Training on.

        Args:
            training_job: One that has not ended.
            host: "algo-1" for example.
            percent: Of one GPU.
            from_minute: None: from now on.
        """
        job = self.table.get(training_job)
        if job.is_final:
            raise AwsError("ValidationException", f"Training job {training_job} has ended.")
        _check_host(job, host)
        since = trained_for(job, self.clock.now()) if from_minute is None else timedelta(minutes=from_minute)
        self.loads.set(training_job, Load(host=host, percent=percent, since=since))

    def training_jobs(self) -> list[dict[str, Any]]:
        """Return the records of all jobs in the order of their creation."""
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


def _check_host(job: TrainingJob, host: str | None) -> None:
    """Refuse a host or GPU that the job lacks; if it may still get several types, the first type counts."""
    hosts = hosts_of(job.groups or job.spec.clusters[0])
    if host is not None and host not in [job_host.name for job_host in hosts]:
        names = ", ".join(job_host.name for job_host in hosts)
        raise AwsError("ValidationException", f"Training job {job.name} has the hosts {names}, not {host}.")
    if not any(gpus(job_host.group.instance_type) for job_host in hosts):
        raise AwsError("ValidationException", f"Training job {job.name} has no GPUs.")
