"""The pool of what belongs to none: adopted jobs whose types no pool has. Nothing there waits for room."""

from dataclasses import replace

from trainmaster.core.planning.snapshot import Snapshot
from trainmaster.core.policy import STRAYS, PoolPolicy

AMPLE = 1_000_000
"""Instances of each type; what the account really allows is learned as in any pool."""


def rules_for(pool: PoolPolicy, snapshot: Snapshot) -> PoolPolicy:
    """The pool as it is written; that of ``STRAYS`` with room for whatever is in it."""
    if pool.name != STRAYS:
        return pool
    asked = [shape.vector for job in (*snapshot.waiting, *snapshot.due) for shape in job.shapes]
    types = sorted({capacity.instance_type for vector in (snapshot.used, *asked) for capacity in vector})
    room = dict.fromkeys(types, AMPLE)
    return replace(pool, capacity=room, spot_capacity=room)
