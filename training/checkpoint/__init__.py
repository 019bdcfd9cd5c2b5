"""Checkpoints that a crash, a stop or a half-finished upload cannot spoil."""

from training.checkpoint.checkpointer import Checkpointer
from training.checkpoint.directory import Checkpoint, CheckpointDirectory

__all__ = ["Checkpoint", "CheckpointDirectory", "Checkpointer"]
