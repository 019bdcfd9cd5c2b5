"""Calls that start training past the queue: they go on as they are, and their user is told so once."""

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from trainmaster_client.hooks.botocore_events import register

_TRAINING_STEPS = frozenset({"Training", "Tuning"})
"""Source: SageMaker Pipeline Definition JSON Schema, step types."""


class RoundTheQueueWarning(UserWarning):
    """Training that trainmaster does not queue: it may take what others wait for, or be stopped for it."""


class Bypasses:
    """Tells of each kind once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def register(self, events: Any) -> None:  # noqa: ANN401  botocore's emitters
        """At events of a boto3 session or client."""
        for event, what, counts in _CALLS:
            register(events, event, self._handler(what, counts))

    def training_in(self, region: str, *, queue: str) -> None:
        """A CreateTrainingJob that goes to another region than the queue's."""
        self._tell(f"This client's CreateTrainingJob goes to {region}, the queue serves {queue}")

    def _handler(self, what: str, counts: Callable[[Mapping[str, Any]], bool]) -> Callable[..., None]:
        def tell(params: Mapping[str, Any], **_: object) -> None:
            if counts(json.loads(params["body"])):
                self._tell(what)

        return tell

    def _tell(self, what: str) -> None:
        if what in self._told:
            return
        self._told.add(what)
        message = f"{what}: not through trainmaster's queue. The policy says what becomes of such jobs."
        warnings.warn(message, RoundTheQueueWarning, stacklevel=3)


def _always(_: Mapping[str, Any]) -> bool:
    return True


def _trains(body: Mapping[str, Any]) -> bool:
    """True for a pipeline with a step that trains. A definition in S3 is not looked into."""
    try:
        steps = json.loads(body.get("PipelineDefinition") or "{}").get("Steps") or ()
        return any(step.get("Type") in _TRAINING_STEPS for step in steps)
    except (ValueError, AttributeError):
        return False  # SageMaker says what is wrong with it


def _is_training(body: Mapping[str, Any]) -> bool:
    return body.get("serviceJobType") == "SAGEMAKER_TRAINING"


_CALLS = (
    (
        "before-call.sagemaker.CreateHyperParameterTuningJob",
        "A tuning job starts its training jobs by itself",
        _always,
    ),
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
