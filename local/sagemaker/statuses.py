"""The statuses of a training job: which follow which, what each says, how long each takes.

Source of names and messages: SageMaker API reference, DescribeTrainingJob and SecondaryStatusTransition;
the order Starting, Pending, Downloading and Stopping, Uploading, Stopped: job logs that the SDK prints.
"""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from random import Random


class Primary(StrEnum):
    IN_PROGRESS = "InProgress"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPING = "Stopping"
    STOPPED = "Stopped"


class Secondary(StrEnum):
    STARTING = "Starting"
    PENDING = "Pending"
    DOWNLOADING = "Downloading"
    TRAINING = "Training"
    UPLOADING = "Uploading"
    INTERRUPTED = "Interrupted"
    RESTARTING = "Restarting"
    STOPPING = "Stopping"
    COMPLETED = "Completed"
    FAILED = "Failed"
    STOPPED = "Stopped"
    MAX_RUNTIME_EXCEEDED = "MaxRuntimeExceeded"
    MAX_WAIT_TIME_EXCEEDED = "MaxWaitTimeExceeded"
    MAX_PENDING_TIME_EXCEEDED = "MaxPendingTimeExceeded"
    """No model of AWS knows it; some worlds end a pending time with it."""


_S = Secondary

STOP_ENDS = frozenset(
    {_S.STOPPED, _S.MAX_RUNTIME_EXCEEDED, _S.MAX_WAIT_TIME_EXCEEDED, _S.MAX_PENDING_TIME_EXCEEDED}
)
FINAL = STOP_ENDS | {_S.COMPLETED, _S.FAILED}

TRANSITIONS: Mapping[Secondary, frozenset[Secondary]] = {
    _S.STARTING: frozenset({_S.PENDING, _S.STOPPING, _S.FAILED}),
    # Straight to an end: its pending time ran out.
    _S.PENDING: STOP_ENDS | {_S.DOWNLOADING, _S.STOPPING, _S.FAILED},
    # Back to Pending: the window of its training plan closed.
    _S.DOWNLOADING: frozenset({_S.TRAINING, _S.INTERRUPTED, _S.PENDING, _S.STOPPING, _S.FAILED}),
    _S.TRAINING: frozenset({_S.UPLOADING, _S.INTERRUPTED, _S.PENDING, _S.STOPPING, _S.FAILED}),
    _S.INTERRUPTED: frozenset({_S.RESTARTING, _S.STOPPING, _S.FAILED}),
    _S.RESTARTING: frozenset({_S.DOWNLOADING, _S.STOPPING, _S.FAILED}),
    # Stopped while it uploaded what it had finished by itself: it ends as it would have.
    _S.UPLOADING: FINAL | {_S.STOPPING},
    _S.STOPPING: FINAL | {_S.UPLOADING},
    **dict.fromkeys(FINAL, frozenset()),
}

_PRIMARY: Mapping[Secondary, Primary] = {
    _S.STOPPING: Primary.STOPPING,
    _S.COMPLETED: Primary.COMPLETED,
    _S.FAILED: Primary.FAILED,
    **dict.fromkeys(STOP_ENDS, Primary.STOPPED),
}

MESSAGES: Mapping[Secondary, str] = {
    _S.STARTING: "Starting the training job",
    _S.PENDING: "Training job waiting for capacity",
    _S.DOWNLOADING: "Downloading input data",
    _S.TRAINING: "Training image download completed. Training in progress.",
    _S.UPLOADING: "Uploading generated training model",
    _S.INTERRUPTED: "Training job interrupted",
    _S.RESTARTING: "Restarting the training job",
    _S.STOPPING: "Stopping the training job",
    _S.COMPLETED: "Training job completed",
    _S.FAILED: "Training job failed",
    _S.STOPPED: "Training job stopped",
    _S.MAX_RUNTIME_EXCEEDED: "Training job runtime exceeded MaxRuntimeInSeconds provided",
    _S.MAX_WAIT_TIME_EXCEEDED: "Training job wait time exceeded MaxWaitTimeInSeconds provided",
    _S.MAX_PENDING_TIME_EXCEEDED: "Training job pending time exceeded MaxPendingTimeInSeconds provided",
}

# How long a job stays in a status beside the real work there, in AWS's time: a speed factor of 60 makes
# a second of a minute. AWS promises none of these; they are of the order that users report.
_WAITS: Mapping[Secondary, timedelta] = {
    _S.STARTING: timedelta(seconds=15),
    _S.PENDING: timedelta(seconds=30),
    _S.DOWNLOADING: timedelta(seconds=30),
    _S.UPLOADING: timedelta(seconds=15),
    _S.INTERRUPTED: timedelta(seconds=30),
    _S.RESTARTING: timedelta(seconds=30),
    _S.STOPPING: timedelta(seconds=10),
}
_WARM_SHARE = 0.1
"""Share of the waits before Training for a job on a warm pool: a cold start takes minutes, AWS aims at
less than 20 seconds for a warm one."""
_WARM_STATUSES = frozenset({_S.STARTING, _S.PENDING, _S.DOWNLOADING})

_WAIT_SPREAD = 0.2
"""A wait is drawn from this share around the mean."""

STOP_GRACE = timedelta(seconds=120)
"""Time between SIGTERM and SIGKILL. Source: SageMaker API reference, StopTrainingJob."""


def primary_of(secondary: Secondary, *, before: Primary) -> Primary:
    """Return the status that goes with a secondary one; uploads of a stopped job are still Stopping."""
    return _PRIMARY.get(secondary, before)


def drawn_wait(status: Secondary, draw: Random, *, is_warm: bool) -> timedelta:
    """Draw how long one job stays in a status; ``is_warm``: its instances were there before it."""
    wait = _WAITS[status] * draw.uniform(1 - _WAIT_SPREAD, 1 + _WAIT_SPREAD)
    return wait * _WARM_SHARE if is_warm and status in _WARM_STATUSES else wait
