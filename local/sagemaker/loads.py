"""How busy the hosts of training jobs are: what a test says, else busy."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from trainmaster.core.memory.accelerators import gpus

from local.sagemaker.hosts import hosts_of
from local.sagemaker.jobs import TrainingJob
from local.sagemaker.statuses import Secondary

NAMESPACE = "/aws/sagemaker/TrainingJobs"
"""Source: SageMaker Developer Guide, "Amazon SageMaker AI metrics in Amazon CloudWatch"."""
BUSY_PERCENT = 95.0
"""Per cent of each GPU, unless a test sets another load."""
OTHER_PERCENT = 50.0
"""CPUUtilization and MemoryUtilization; the same at all times."""
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    host: str | None
    """Name of the host; None means all hosts."""
    percent: float
    """Per cent of one GPU."""
    since: timedelta
    """Begin of the load, counted from when the job first reached Training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    metric: str
    dimension: tuple[str, str]
    """Name and value: of Host the training job, a slash and the host's name."""
    value: float
    unit: str = "Percent"
    """CloudWatch's unit. GPUs of a host are added up."""


class Loads:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loads: dict[str, tuple[Load, ...]] = {}

    def set(self, training_job: str, load: Load) -> None:
        """Add a load; of two loads that begin in the same minute the later one counts."""
        with self._lock:
            loads = (*self._loads.get(training_job, ()), load)
            self._loads[training_job] = tuple(sorted(loads, key=lambda known: known.since))

    def mean_percent(self, training_job: str, host: str, begin: timedelta, end: timedelta) -> float:
        """Return the mean per cent of one GPU, over a time since the job first reached Training."""
        changes = {load.since for load in self._loads.get(training_job, ()) if begin < load.since < end}
        marks = sorted({begin, end, *changes})
        parts = [
            self.percent(training_job, host, since) * ((until - since) / (end - begin))
            for since, until in pairwise(marks)
        ]
        return sum(parts)

    def percent(self, training_job: str, host: str, trained: timedelta) -> float:
        """Return the per cent of one GPU, that long after the job first reached Training."""
        begun = [
            load.percent
            for load in self._loads.get(training_job, ())
            if load.host in (None, host) and load.since <= trained
        ]
        return begun[-1] if begun else BUSY_PERCENT

    def samples(self, job: TrainingJob, now: datetime) -> Iterator[Sample]:
        """Yield the samples of the minute that ends now; none if the job is not in Training."""
        if job.secondary is not Secondary.TRAINING:
            return
        end = trained_for(job, now)
        begin = max(end - _MINUTE, timedelta())
        if begin == end:
            return
        for host in hosts_of(job.groups):
            dimension = ("Host", f"{job.name}/{host.name}")
            if count := gpus(host.group.instance_type):
                percent = self.mean_percent(job.name, host.name, begin, end)
                yield Sample(metric="GPUUtilization", dimension=dimension, value=percent * count)
            for metric in ("CPUUtilization", "MemoryUtilization"):
                yield Sample(metric=metric, dimension=dimension, value=OTHER_PERCENT)


def trained_for(job: TrainingJob, now: datetime) -> timedelta:
    """Return how long ago the job first reached Training; zero before that."""
    begun = [transition.start for transition in job.transitions if transition.status is Secondary.TRAINING]
    return now - begun[0] if begun else timedelta()
