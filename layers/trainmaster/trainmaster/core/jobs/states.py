"""States of a job, and the legal steps between them.

``model`` hands on the states and their sets, as most who know a job need them.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class JobState(StrEnum):
    PENDING = "pending"
    HELD = "held"
    STARTING = "starting"
    RUNNING = "running"
    PREEMPTING = "preempting"
    PREEMPTED = "preempted"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"


_S = JobState

TRANSITIONS: Mapping[JobState, frozenset[JobState]] = MappingProxyType(
    {
        _S.PENDING: frozenset({_S.STARTING, _S.HELD, _S.STOPPED, _S.FAILED}),
        _S.HELD: frozenset({_S.PENDING, _S.PREEMPTED, _S.STOPPED, _S.FAILED}),
        _S.STARTING: frozenset(
            {_S.RUNNING, _S.PENDING, _S.PREEMPTED, _S.STOPPING, _S.COMPLETED, _S.FAILED, _S.STOPPED},
        ),
        _S.RUNNING: frozenset(
            {_S.PREEMPTING, _S.PREEMPTED, _S.STOPPING, _S.PENDING, _S.COMPLETED, _S.FAILED, _S.STOPPED},
        ),
        _S.PREEMPTING: frozenset(
            {_S.PREEMPTED, _S.PENDING, _S.STOPPING, _S.COMPLETED, _S.FAILED, _S.STOPPED},
        ),
        _S.PREEMPTED: frozenset({_S.STARTING, _S.HELD, _S.STOPPED, _S.FAILED}),
        _S.STOPPING: frozenset({_S.COMPLETED, _S.FAILED, _S.STOPPED}),
        _S.COMPLETED: frozenset(),
        _S.FAILED: frozenset(),
        _S.STOPPED: frozenset(),
    },
)

WAITING = frozenset({_S.PENDING, _S.PREEMPTED})
"""States of jobs that wait in the queue for their turn."""
LIVE = frozenset({_S.STARTING, _S.RUNNING, _S.PREEMPTING, _S.STOPPING})
"""States of jobs that hold instances."""
FINAL = frozenset({_S.COMPLETED, _S.FAILED, _S.STOPPED})
"""States that are never left."""


class IllegalTransitionError(ValueError):
    """A step was tried that TRANSITIONS does not have: a bug of ours."""
