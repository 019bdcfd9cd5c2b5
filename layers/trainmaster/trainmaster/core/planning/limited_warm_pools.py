"""Warm pools of types of which the account refuses more: they go to the next in turn, as free room does.

What is kept warm counts towards the account's limit. Jobs that can use it would otherwise pass those before
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
from trainmaster.core.planning.snapshot import WaitingJob, WarmPool
from trainmaster.core.planning.warm_pools import is_leaving

OFTEN = 5
"""Refusals in a row after which a job takes no warm pool from others: AWS may never accept it."""
SEVERAL = 2
"""So many different jobs were refused: it is the quota of the type, and not what one of them asks for."""


@dataclass(kw_only=True)
class LimitedWarmPools:
    """Of one plan."""

    capacity: FreeCapacity
    quotas: Quotas

    def given_up_for(self, job: WaitingJob, why: Reason | None) -> tuple[WarmPool, ...]:
        """What brings it below the learned limits; nothing where that is not enough, or it may ask AWS first.

        Args:
            job: Next in turn. Warm pools that are leaving already count for it.
            why: It may not start; None: it may, by all but capacity.
        """
        allowed, refused = self.capacity.allowed, job.refused
        if not allowed or job.name in self.capacity.holds or (refused and refused.count >= OFTEN):
            return ()
        if why is not None and why.code is not ReasonCode.ACCOUNT_LIMIT:
            return ()
        needed = SEVERAL if refused else 1
        if not all(self._is_limited(shape.vector, refusals=needed) for shape in job.shapes):
            return ()
        best = job.shapes[0].vector
        if any(self.capacity.warm_pool_for(shape) for shape in job.shapes) or self._over_quota(job, best):
            return ()
        return self._released(best)

    def give_up_for_a_try(self, job: WaitingJob, vector: Vector) -> None:
        """Give up unused ones for a job that AWS refused, or that tries for all of its role.

        They keep instances from nobody but those that wait, and unless it is tried nothing is learned of it.
        It counts on what is leaving already, and keeps nothing of it from others.
        """
        is_tried_for_itself = job.refused is not None  # only where the limits say so: see above
        if is_tried_for_itself or (job.turned_down or 0) >= OFTEN or fits(vector, self.capacity.soon):
            return
        self.capacity.release_for(vector, self.capacity.free)

    def _over_quota(self, job: WaitingJob, vector: Vector) -> bool:
        return bool(self.quotas.quotas) and self.quotas.refusal(job, vector) is not None

    def _is_limited(self, vector: Vector, *, refusals: int) -> bool:
        """Above a limit that so many jobs have met, and that it is too early to ask about again."""
        limits, now = self.capacity.snapshot.account_limits, self.capacity.now
        above = (limits[one] for one in self.capacity.above_limit(vector, None))
        return any(one.until > now and one.refusals >= refusals for one in above)

    def _released(self, vector: Vector) -> tuple[WarmPool, ...]:
        room = {one: self._room.get(one, count) for one, count in vector.items()}
        released = self.capacity.release_for(vector, room)
        take(room, total(one.vector for one in released), times=-1)
        if fits(vector, room):
            take(room, vector)
            self._room.update(room)
        return released

    @cached_property
    def _room(self) -> dict[Capacity, int]:
        """What the limits leave once all that is leaving has left; changed as it is given away."""
        pools, now = self.capacity.snapshot.warm_pools, self.capacity.now
        leaving = total(one.vector for one in pools if is_leaving(one, now=now))
        return {one: count + leaving.get(one, 0) for one, count in self.capacity.allowed.items()}
