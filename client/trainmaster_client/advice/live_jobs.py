"""The jobs of a queue that are not over, from the lines that the API exports."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainmaster_client.advice.queue_forecast import LiveJob
from trainmaster_client.simulate.histories.export_lines import ExportedAttempt, ExportedJob
from trainmaster_client.simulate.histories.exported_history import exported_history
from trainmaster_client.simulate.histories.past_training import counted

SHORTEST = timedelta(minutes=10)
"""Training that a job is assumed to need at least: one that runs longer than such jobs did may go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveQueue:
    """The jobs on instances of one type."""

    instance_type: str
    jobs: tuple[LiveJob, ...]
    """Running ones first, then in the order of priority and submission."""

    @property
    def waiting(self) -> tuple[LiveJob, ...]:
        return tuple(job for job in self.jobs if not job.is_running)

    @property
    def hours(self) -> float:
        """Return instance-hours of training that is left."""
        hour = timedelta(hours=1)
        return sum(job.needs / hour * job.instances for job in self.jobs)


def live_queues(lines: Sequence[ExportedJob], *, read_at: datetime) -> list[LiveQueue]:
    """Return a queue for each type that a single-type job waits for or runs on, by its name.

    How long a job still trains is what a replay assumes: of one that ran, as long again as it did; of one
    that did not, what is usual in its team; at most MaxRuntimeInSeconds. Jobs on spot and jobs
    that run on training plans alone are left out.
    """
    opened = [line for line in lines if line.end is None and _is_on_demand(line)]
    if not opened:
        return []
    history = exported_history(lines, source="the queue", read_at=read_at)
    length = {(job.name, job.submitted_at): job.trains_for for job in history.jobs}
    queues: dict[str, list[tuple[tuple[bool, int, datetime], LiveJob]]] = {}
    for line in opened:
        [(instance_type, count)] = line.instances.items()
        left = length.get(line.key, line.max_runtime) - counted(line.attempts, read_at)
        job = LiveJob(
            name=line.name,
            instances=count,
            needs=max(left, SHORTEST),
            saves=line.saves_checkpoints and line.preemptible is not False,
            is_running=_is_live(line.attempts),
        )
        order = (not job.is_running, -line.priority, line.submitted_at)
        queues.setdefault(instance_type, []).append((order, job))
    return [LiveQueue(instance_type=name, jobs=tuple(_in_order(queues[name]))) for name in sorted(queues)]


def _in_order(jobs: Iterable[tuple[tuple[bool, int, datetime], LiveJob]]) -> Iterable[LiveJob]:
    return (job for _, job in sorted(jobs, key=lambda placed: (placed[0], placed[1].name)))


def _is_on_demand(line: ExportedJob) -> bool:
    return line.capacity_type == "on-demand" and len(line.instances) == 1


def _is_live(attempts: Sequence[ExportedAttempt]) -> bool:
    return bool(attempts) and attempts[-1].ended_at is None
