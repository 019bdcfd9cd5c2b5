"""The plain priority queue to compare with: strict head of the queue, the lowest priority stopped first.

It is the algorithm that the idea of a priority scheduler for training jobs starts from, made race-free: it
counts what is already stopping, and several instances of one job start together or not at all. It knows no
backfill, no checkpoints and no warm pools, and it stops one job at a time.
"""

from bisect import insort

from benchmarks.replay.site import Attempt, Site, Task


class NaiveQueue:
    """Decides for one pool."""

    def __init__(self, site: Site, capacity: int) -> None:
        self._site = site
        self._free = capacity
        self._coming = 0
        """Instances of attempts that are stopping."""
        self._waiting: list[Task] = []
        self._running: dict[str, Attempt] = {}

    def submitted(self, task: Task) -> None:
        insort(self._waiting, task, key=_turn)

    def trains(self, attempt: Attempt) -> None:
        """Of no interest to it."""

    def woken(self) -> None:
        """It never asks to be."""

    def ended(self, attempt: Attempt, *, completed: bool) -> None:
        task = attempt.task
        self._free += task.job.instances
        if completed:
            del self._running[task.job.job_id]
        else:
            self._coming -= task.job.instances
            self.submitted(task)

    def decide(self) -> None:
        """Start from the head while the head fits; then stop one job for it, if that is not under way."""
        while self._waiting and self._waiting[0].job.instances <= self._free:
            task = self._waiting.pop(0)
            self._free -= task.job.instances
            self._running[task.job.job_id] = self._site.start(task, warm=False)
        if self._waiting and self._free + self._coming < self._waiting[0].job.instances:
            self._stop_one_for(self._waiting[0])

    def _stop_one_for(self, head: Task) -> None:
        below = [one for one in self._running.values() if one.task.job.klass < head.job.klass]
        if not below:
            return
        victim = min(below, key=lambda one: (one.task.job.klass, one.task.job.submit_s, one.start_s))
        del self._running[victim.task.job.job_id]
        self._coming += victim.task.job.instances
        self._site.stop(victim)


def _turn(task: Task) -> tuple[int, int, str]:
    return (-task.job.klass, task.job.submit_s, task.job.job_id)
