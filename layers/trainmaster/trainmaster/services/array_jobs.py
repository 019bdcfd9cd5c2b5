"""Has the jobs of an array follow a change of the array: stopped, held, released, or in another order.

The change is written first, with a message. The jobs follow in slices, and after each slice the message says
how far it went; done twice it changes nothing. A later job of a task is made from the changed array.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from trainmaster.core.arrays.model import Array
from trainmaster.core.arrays.tasks import task_name
from trainmaster.core.jobs.index_sets import first_positions
from trainmaster.core.jobs.model import Job
from trainmaster.core.lifecycle.array_tasks import followed
from trainmaster.core.outbox.messages import MessageKind, OutboxMessage
from trainmaster.core.policy import PoolPolicy
from trainmaster.ports import Clock, JobStore, PoolReader
from trainmaster.ports.table import JobReader
from trainmaster.services import job_steps

SLICE = 50
"""Jobs that follow between two notes of how far it went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayJobs:
    """Reads and changes the jobs of arrays."""

    reader: JobReader
    pools: PoolReader
    store: JobStore
    clock: Clock

    def follow(self, array: Array, pool: PoolPolicy, *, behind: int, releases: bool) -> int | None:
        """Have one slice of jobs follow.

        Args:
            array: As it is now.
            pool: Its pool's section of the policy.
            behind: Position of the last task that has followed; -1: none has.
            releases: Whether the array was released, so that its held tasks are, too.

        Returns:
            Position of the last task of the slice; None if there are no more.
        """
        left = array.existing >> (behind + 1) << (behind + 1)
        positions = first_positions(left, SLICE)
        names = [task_name(array.name, array.indices[position]) for position in positions]
        jobs = self.pools.jobs(names) if names else {}
        for job in jobs.values():
            if job.spec.array is None or job.spec.array.name != array.name:
                continue
            step = partial(followed, array=array, pool=pool, releases=releases, now=self.clock())
            read: Callable[[], Job | None] = partial(self.reader.job, job.name)
            job_steps.change_job(job, step, read=read, store=self.store, clock=self.clock)
        return positions[-1] if len(positions) == SLICE else None


def message_to_jobs(array: Array, *, at: datetime, releases: bool = False) -> OutboxMessage:
    """Return the message of a change of an array; each version of the array has one."""
    return OutboxMessage(
        id=f"#array#{array.entry_id}#{array.ver:06d}",
        kind=MessageKind.FOLLOW_ARRAY,
        at=at,
        array=array.name,
        releases=releases or None,
    )
