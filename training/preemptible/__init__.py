"""Saves, stops and resumes any script; imports nothing else of `training`, and is copied as one folder.

This module itself holds the errors of checkpoints; it does not import torch.

* CheckpointError
  + CheckpointPlaceError     the location names no place
  + CheckpointPackageError   the location needs packages that are not installed
  + CheckpointMismatchError  the newest checkpoint is of another training
  + CheckpointReadError      there are checkpoints, and none may be used; going back would lose work
  + CheckpointSaveError      one could not be saved; those before it are untouched
"""

from collections.abc import Mapping, Sequence

_DIFFERENCES = 5
"""The most differences that a message lists; it has to fit into the 1,024 characters of a FailureReason."""


class CheckpointError(Exception):
    """Its message alone tells the user what to do; no traceback is needed."""


class CheckpointPlaceError(CheckpointError):
    def __init__(self, location: str) -> None:
        super().__init__(f"hyperparameters: checkpoint_dir {location!r} names no bucket: s3://BUCKET/PREFIX")


class CheckpointPackageError(CheckpointError):
    def __init__(self, *, location: str, packages: Sequence[str]) -> None:
        super().__init__(
            f"checkpoints in {location} need the package {', '.join(packages)}, which is not installed: "
            "add it as a line to requirements.txt beside train.py"
        )
        self.packages = tuple(packages)


class CheckpointMismatchError(CheckpointError):
    """The checkpoint was written with other values of the options that fix what is trained."""

    def __init__(self, *, path: str, differences: Mapping[str, tuple[str, str]]) -> None:
        changes = [f"{key} was {was}, now {now}" for key, (was, now) in sorted(differences.items())]
        super().__init__(
            f"checkpoint {path} is of another training: {listed(changes, most=_DIFFERENCES)}; "
            "use another checkpoint directory"
        )
        self.path, self.differences = path, dict(differences)


class CheckpointReadError(CheckpointError):
    """There are checkpoints, and none may be used: another start would lose work without a word."""


class CheckpointSaveError(CheckpointError):
    """A checkpoint could not be saved. Raised on all ranks, by the save, the next save or ``wait``."""


def listed(words: Sequence[object], *, most: int, between: str = ", ") -> str:
    """Join the first ``most`` words, and say how many more there are: `a, b and 3 more`.

    The training program has a copy of this function for its errors: this folder is copied without it.
    """
    remainder = f" and {len(words) - most} more" if len(words) > most else ""
    return between.join(str(word) for word in words[:most]) + remainder
