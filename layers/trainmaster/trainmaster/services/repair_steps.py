"""Recount the table from its jobs, slice by slice: first read all of it, then correct each pool.

Crash safety: what a slice contains is written before its progress, and repeating a page or a pool has the
same result.
"""

from dataclasses import dataclass, replace

from trainmaster.core.errors import LostRaceError
from trainmaster.core.row_differences import Repair, RepairState
from trainmaster.ports import Clock, RepairStore, SetAsideRegister
from trainmaster.services.deadline import Deadline


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairSteps:
    store: RepairStore
    register: SetAsideRegister
    clock: Clock

    def run(self, deadline: Deadline) -> None:
        """Do as much of a requested repair as the time allows; the next run continues."""
        repair = self.store.repair()
        if repair is None or repair.state is RepairState.DONE:
            return
        while not repair.is_read and not deadline.is_over:
            repair = self._read(repair)
        if repair.is_read:
            self._recount(repair, deadline)

    def _read(self, repair: Repair) -> Repair:
        page = self.store.page(repair.position)
        self.store.note(repair, page)
        read = replace(
            repair,
            jobs_read=repair.jobs_read + page.jobs,
            pages=repair.pages + 1,
            position=page.position,
            is_read=page.position is None,
        )
        self.store.save(read)
        return read

    def _recount(self, repair: Repair, deadline: Deadline) -> None:
        """Recount the pools; one that kept changing is left to the next run."""
        counted, _ = self.store.found(repair)
        for pool in sorted(counted.keys() - set(repair.pools_done)):
            if deadline.is_over:
                return
            try:
                different = self.store.recount(pool, counted[pool], apply=repair.apply)
            except LostRaceError:
                continue
            self.store.keep_differences(repair, pool, different)
            repair = replace(repair, pools_done=(*repair.pools_done, pool))
            self.store.save(repair)
        if counted.keys() <= set(repair.pools_done):
            self.store.save(replace(repair, state=RepairState.DONE, finished_at=self.clock()))
            if repair.apply:
                self.register.forget()
