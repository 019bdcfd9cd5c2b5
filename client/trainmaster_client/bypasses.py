"""Warns of calls that bypass the queue: they pass unchanged, and their user is warned once."""

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_TRAINING_STEPS = frozenset({"Training", "Tuning"})
"""Source: SageMaker Pipeline Definition JSON Schema, step types."""


class QueueBypassWarning(UserWarning):
    """Training that trainmaster does not queue: it may take what others wait for, or be stopped for it."""


RoundTheQueueWarning = QueueBypassWarning
"""Earlier name of the warning, for filters that have it."""


class Bypasses:
    """Warns of each kind once."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def handlers(self) -> Iterator[tuple[str, Callable[..., None]]]:
        """Yield each event of a boto3 session or client with the handler to register for it."""
        for event, what, counts in _CALLS:
            yield event, self._handler(what, counts)

    def training_in(self, region: str, operation: str, *, queue: str) -> None:
        """Warn of an operation that starts training in another region than the queue's."""
        self._warn(f"This client's {operation} goes to {region}, the queue serves {queue}")

    def _handler(self, what: str, counts: Callable[[Mapping[str, Any]], bool]) -> Callable[..., None]:
        def warn(params: Mapping[str, Any], **_: object) -> None:
            if counts(json.loads(params["body"])):
                self._warn(what)

        return warn

    def _warn(self, what: str) -> None:
        if what in self._warned:
            return
        self._warned.add(what)
        message = f"{what}, bypassing trainmaster's queue. The policy decides what happens to such jobs."
        warnings.warn(message, QueueBypassWarning, stacklevel=3)


def _trains(body: Mapping[str, Any]) -> bool:
    """Tell whether a pipeline has a step that trains. A definition in S3 is not read."""
    try:
        steps = json.loads(body.get("PipelineDefinition") or "{}").get("Steps") or ()
        return any(step.get("Type") in _TRAINING_STEPS for step in steps)
    except (ValueError, AttributeError):
        return False  # SageMaker says what is wrong with it


def _is_training(body: Mapping[str, Any]) -> bool:
    return body.get("serviceJobType") == "SAGEMAKER_TRAINING"


_CALLS = (
    (
        "before-call.sagemaker.CreatePipeline",
        "A pipeline starts the training of its steps by itself",
        _trains,
    ),
    (
        "before-call.sagemaker.UpdatePipeline",
        "A pipeline starts the training of its steps by itself",
        _trains,
    ),
    ("before-call.batch.SubmitServiceJob", "AWS Batch starts the training jobs of its queues", _is_training),
)
