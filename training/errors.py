"""Every error this program raises on purpose, and how it is reported.

Those of checkpoints are in preemptible.

It does not import torch, so that bad options fail at once.

* TrainingError
  + ConfigError              the hyperparameters are wrong; all that is wrong with them at once
  + UnsupportedTorchError    the installed torch is too old, or lacks what an option needs
  + UnsupportedDeviceError   the device lacks what an option needs
  + DoesNotFitError          the model's state is larger than the memory there is
  + MissingPackageError      an option needs a package that is not installed
  + WeightsError             weights cannot be read from, or written to, files of safetensors
  + DataError                token shards are missing, damaged, out of reach or do not fit the model
  + NotFiniteError           a step would have made the weights infinite or not numbers
  + FoundNotFiniteError      the same, by the search for its origin
  + MissingRanksError        ranks did not come to the start
  + LostRanksError           ranks came, and cannot reach each other
  + MeetingError             the first rank cannot serve the place where ranks meet
"""

import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

_GIB = 2**30
_FAILURE_CHARACTERS = 1024
"""The most characters of the failure file that SageMaker takes as FailureReason (DescribeTrainingJob)."""
_DEFAULT_OUTPUT_DIR = "/opt/ml/output"


class TrainingError(Exception):
    """Its message alone tells the user what to do; no traceback is needed."""


class ConfigError(TrainingError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("hyperparameters: " + "; ".join(problems))
        self.problems = tuple(problems)


class UnsupportedTorchError(TrainingError):
    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(
            "; ".join(problems) + ": choose another image, see docs/training/README.md#versions-of-pytorch"
        )


class UnsupportedDeviceError(TrainingError):
    """The device lacks what an option needs; the message names what would do instead."""


class DoesNotFitError(TrainingError):
    """The state needs more memory than the rank with the least has; ``need`` and ``room`` are in bytes."""

    def __init__(self, *, need: int, room: int, where: str, would_fit: Sequence[str]) -> None:
        advice = "would fit: " + "; ".join(would_fit) if would_fit else "take more, or larger, instances"
        super().__init__(
            f"weights, gradients and optimizer need {need / _GIB:.1f} GiB on each rank, which has "
            f"{room / _GIB:.1f} GiB ({where}): {(need - room) / _GIB:.1f} GiB too much; {advice}"
        )
        self.need, self.room, self.would_fit = need, room, tuple(would_fit)


class MissingPackageError(TrainingError):
    def __init__(self, *, what: str, packages: Sequence[str]) -> None:
        super().__init__(
            f"{what} need the package {', '.join(packages)}, which is not installed: add it as a line to "
            "requirements.txt beside train.py"
        )
        self.packages = tuple(packages)


class WeightsError(TrainingError):
    """Weights to start from, or to leave behind, cannot be read or written."""


class DataError(TrainingError):
    """The training data cannot be used."""

    def __init__(self, *, place: str, problem: str, remedy: str) -> None:
        super().__init__(f"data {place}: {problem}; {remedy}")
        self.place, self.problem, self.remedy = place, problem, remedy


class NotFiniteError(TrainingError):
    """The gradients of ``step`` were not finite; it changed nothing, and nothing later was saved."""

    def __init__(self, *, step: int, loss: float, lr: float) -> None:
        super().__init__(
            f"the gradients of step {step} are not finite (newest loss {loss}, lr {lr:g}); the step was not "
            "made and nothing after it is saved: lower lr, lengthen warmup_steps, or look at that step's data"
        )
        self.step = step


class FoundNotFiniteError(TrainingError):
    """The search found where a value that is not finite came from; the step was not made."""

    def __init__(self, *, step: int, rank: int, what: str) -> None:
        super().__init__(
            f"step {step}: the first value that is not finite is {what} (rank {rank}); the step was not "
            "made: look at these samples, lower lr, or lengthen warmup_steps"
        )
        self.step, self.rank = step, rank


class MissingRanksError(TrainingError):
    def __init__(self, *, who: str, seconds: float) -> None:
        super().__init__(
            f"{who} did not join within {seconds:g} s; see what its log says, "
            "or raise join_seconds if it only starts late"
        )


class LostRanksError(TrainingError):
    def __init__(self, *, who: str, reason: str) -> None:
        """Name ``who`` no longer answers; empty if all do, but not to each other."""
        gone = f"{who} joined and does not answer any more; see what its log says"
        deaf = (
            "the ranks cannot reach each other; hosts need all ports open between them (security group), and "
            "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME must name their network"
        )
        super().__init__(f"{gone if who else deaf}: {reason}")


class MeetingError(TrainingError):
    def __init__(self, *, where: str, reason: str) -> None:
        super().__init__(
            f"rank 0 cannot listen at {where} for the others: {reason}; choose another MASTER_PORT"
        )


def listed(words: Sequence[object], *, most: int, between: str = ", ") -> str:
    """Join the first ``most`` words, and say how many more there are: `a, b and 3 more`."""
    remainder = f" and {len(words) - most} more" if len(words) > most else ""
    return between.join(str(word) for word in words[:most]) + remainder


def report_failure(
    error: Exception, env: Mapping[str, str], *, plain: tuple[type[Exception], ...] = ()
) -> None:
    """Write one clear message to stderr, and into the failure file where there is a place for it.

    Args:
        error: What ended the attempt.
        env: Names the directory of the failure file.
        plain: Errors besides TrainingError whose message alone tells the user what to do.
    """
    is_plain = isinstance(error, (TrainingError, *plain))
    message = str(error) if is_plain else f"{type(error).__name__}: {error}"
    if not is_plain:
        traceback.print_exception(error)
    print(f"error: {message}", file=sys.stderr, flush=True)
    directory = Path(env.get("SM_OUTPUT_DIR", _DEFAULT_OUTPUT_DIR))
    if directory.is_dir():
        try:
            with (directory / "failure").open("x") as file:  # of several ranks the first one tells
                file.write(message[:_FAILURE_CHARACTERS])
        except FileExistsError:
            pass
