"""Every error this program raises on purpose.

* TrainingError
  + ConfigError              the hyperparameters are wrong; all that is wrong with them at once
  + CheckpointMismatchError  the newest checkpoint is of another training
"""

from collections.abc import Mapping, Sequence


class TrainingError(Exception):
    """Its message alone tells the user what to do; no traceback is needed."""


class ConfigError(TrainingError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("hyperparameters: " + "; ".join(problems))
        self.problems = tuple(problems)


class CheckpointMismatchError(TrainingError):
    """The checkpoint was written with other values of the options that fix what is trained."""

    def __init__(self, *, path: str, differences: Mapping[str, tuple[str, str]]) -> None:
        told = ", ".join(f"{key} was {was}, now {now}" for key, (was, now) in sorted(differences.items()))
        super().__init__(
            f"checkpoint {path} is of another training: {told}; use another checkpoint directory"
        )
        self.path, self.differences = path, dict(differences)
