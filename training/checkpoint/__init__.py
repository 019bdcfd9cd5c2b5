"""Checkpoints that a crash, a stop or a half-finished upload cannot spoil; for any PyTorch script.

Of the rest of the program only its errors are needed here.
"""

from training.checkpoint.checkpointer import Checkpointer, Resumed
from training.checkpoint.local_store import LocalStore
from training.checkpoint.opening import open_store
from training.checkpoint.schedule import Retention, SaveTimer, next_interval
from training.checkpoint.status import JobState
from training.checkpoint.store import CheckpointStore

__all__ = [
    "CheckpointStore",
    "Checkpointer",
    "JobState",
    "LocalStore",
    "Resumed",
    "Retention",
    "SaveTimer",
    "next_interval",
    "open_store",
]
