"""Warm pools of types that the account refuses more of: they go to the next in turn, as free instances do.

Warm instances count towards the account's limit. Jobs that can use them would otherwise pass those before
them for as long as they follow each other.
"""

from dataclasses import dataclass
from functools import cached_property

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.instances import Capacity, Vector, fits, total
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.planning.capacity import take
from trainmaster.core.planning.free_capacity import FreeCapacity
from trainmaster.core.planning.quotas import Quotas
from trainmaster.core.planning.refusal_records import SEVERAL
from trainmaster.core.planning.snapshot import WaitingJob, WarmPool
from trainmaster.core.planning.warm_pools import is_leaving

OFTEN = 5
"""Refusals in a row after which a job takes no warm pool from others: AWS may never accept it."""


@dataclass(kw_only=True)
class LimitedWarmPools:
    """The limited warm pools of one plan."""

    capacity: FreeCapacity
    quotas: Quotas

    def given_up_for(self, job: WaitingJob, why: Reason | None) -> tuple[WarmPool, ...]:
        """Return the warm pools whose release brings a job below the learned limits.

        None are returned if that is not enough, or the job may ask AWS first.

        Args:
            job: Next in turn. Warm pools that are leaving already count for it.
            why: Reason why it may not start; None: it may, by all but capacity.
        """
        allowed, refused = self.capacity.allowed, job.refused
        if not allowed or job.name in self.capacity.holds or (refused and refused.count >= OFTEN):
            return ()
        if why is not None and why.code is not ReasonCode.ACCOUNT_LIMIT:
            return ()
        # A job that was refused itself may be the cause: only a second one shows that the quota of the type
        # is used up.
        needed = SEVERAL if refused else 1
        if not all(self._is_limited(shape.vector, refusals=needed) for shape in job.shapes):
            return ()
        best = job.shapes[0].vector
        if any(self.capacity.warm_pool_for(shape) for shape in job.shapes) or self._over_quota(job, best):
            return ()
        return self._released(best)

    def give_up_for_a_try(self, job: WaitingJob, vector: Vector) -> None:
        """Give up unused ones for a job that AWS refused, or that is tried for all of its role.

        They are kept only from jobs that wait, and unless it is tried nothing is learned of it. It counts
        on what is leaving already, and keeps nothing of it from others.
        """
        is_tried_for_itself = job.refused is not None  # only where the limits say so: see above
        if (
            is_tried_for_itself
            or (job.turned_down or 0) >= OFTEN
            or fits(vector, self.capacity.soon.of(job.team))
        ):
            return
        self.capacity.release_for(vector, self.capacity.free.of(job.team))

    def _over_quota(self, job: WaitingJob, vector: Vector) -> bool:
        return bool(self.quotas.quotas) and self.quotas.refusal(job, vector) is not None

    def _is_limited(self, vector: Vector, *, refusals: int) -> bool:
        """Tell whether it exceeds a limit that this many jobs have met and that may not be tested yet."""
        limits, now = self.capacity.snapshot.account_limits, self.capacity.now
        above = (limits[capacity] for capacity in self.capacity.above_limit(vector, None))
        return any(limit.until > now and limit.refusals >= refusals for limit in above)

    def _released(self, vector: Vector) -> tuple[WarmPool, ...]:
        room = {capacity: self._room.get(capacity, count) for capacity, count in vector.items()}
        released = self.capacity.release_for(vector, room)
        take(room, total(pool.vector for pool in released), times=-1)
        if fits(vector, room):
            take(room, vector)
            self._room.update(room)
        return released

    @cached_property
    def _room(self) -> dict[Capacity, int]:
        """Instances that the limits leave once all that is leaving has left; given away step by step."""
        pools, now = self.capacity.snapshot.warm_pools, self.capacity.now
        leaving = total(pool.vector for pool in pools if is_leaving(pool, now=now))
        return {
            capacity: count + leaving.get(capacity, 0) for capacity, count in self.capacity.allowed.items()
        }
