"""All training jobs of the account: names are unique until deleted, changes are one at a time."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager

from local.sagemaker.jobs import TrainingJob
from local.wire import AwsError

NOT_FOUND = "Requested resource not found."
"""SageMaker's words for any unknown training job, as a ValidationException."""


class JobTable:
    def __init__(self, on_step: Callable[[TrainingJob], None]) -> None:
        """Take ``on_step``, which is called after each change of status, in the order of the changes."""
        self._on_step = on_step
        self._lock = threading.RLock()
        self._jobs: dict[str, TrainingJob] = {}

    def changing(self) -> AbstractContextManager[object]:
        """Keeps others from changing any job meanwhile."""
        return self._lock

    def add(self, job: TrainingJob) -> None:
        with self._lock:
            if job.name in self._jobs:
                raise AwsError(
                    "ResourceInUse",
                    "Training job names must be unique within an AWS account and region, and a training "
                    f"job with this name already exists ({self._jobs[job.name].arn})",
                )
            self._jobs[job.name] = job
            self._on_step(job)

    def find(self, name: str) -> TrainingJob | None:
        return self._jobs.get(name)

    def get(self, name: str) -> TrainingJob:
        job = self._jobs.get(name)
        if job is None:
            raise AwsError("ValidationException", NOT_FOUND)
        return job

    def update(self, name: str, change: Callable[[TrainingJob], TrainingJob]) -> TrainingJob:
        """Replace a job by what ``change`` makes of it; what that raises leaves the job as it was."""
        with self._lock:
            old = self.get(name)
            new = self._jobs[name] = change(old)
            if len(new.transitions) > len(old.transitions):
                self._on_step(new)
            return new

    def remove(self, name: str, check: Callable[[TrainingJob], None]) -> None:
        """Forget a job, unless ``check`` raises."""
        with self._lock:
            check(self.get(name))
            del self._jobs[name]

    def all(self) -> list[TrainingJob]:
        with self._lock:
            return list(self._jobs.values())
