"""Tells SageMaker and the user why an attempt failed. No torch here: bad options fail in no time."""

import sys
import traceback
from collections.abc import Mapping
from pathlib import Path

from training.errors import TrainingError

_CHARACTERS = 1024
"""SageMaker takes that many of the failure file as FailureReason (DescribeTrainingJob)."""
_DEFAULT_OUTPUT_DIR = "/opt/ml/output"


def report_failure(error: Exception, env: Mapping[str, str]) -> None:
    """One clear message, to stderr and into the failure file where there is a place for it."""
    message = str(error) if isinstance(error, TrainingError) else f"{type(error).__name__}: {error}"
    if not isinstance(error, TrainingError):
        traceback.print_exception(error)
    print(f"error: {message}", file=sys.stderr, flush=True)
    directory = Path(env.get("SM_OUTPUT_DIR", _DEFAULT_OUTPUT_DIR))
    if directory.is_dir():
        try:
            with (directory / "failure").open("x") as file:  # of several ranks the first one tells
                file.write(message[:_CHARACTERS])
        except FileExistsError:
            pass
