"""Estimators of the SageMaker SDKs that train as an array: their own request, and values as they write them.

The SDKs are not imported: an estimator is known by its methods, those of v2 by ``fit``, of v3 by ``train``.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any

import boto3

from trainmaster_client.api import Document
from trainmaster_client.errors import InvalidArgumentError, UnsupportedTrainerError
from trainmaster_client.hooks.array_calls import WANTED, WantedTasks
from trainmaster_client.hooks.estimator_sessions import hook_session
from trainmaster_client.jobs.array_requests import ArrayWish, Encode

_QUEUE_SESSION = "QueueTrainingJobSession"
_FRAMEWORK = "Framework"
"""Base class of the SDK v2's estimators that write each hyperparameter as JSON."""


def is_estimator(source: object) -> bool:
    """Tell whether this is an estimator of the SDK v2 or a ModelTrainer of v3."""
    return hasattr(source, "sagemaker_session") and (hasattr(source, "fit") or hasattr(source, "train"))


def train_as_array(
    estimator: Any,  # noqa: ANN401  of an SDK
    wish: ArrayWish,
    *,
    inputs: Any = None,  # noqa: ANN401  as the SDK takes them
    job_name: str | None = None,
    api_url: str | None = None,
) -> Document:
    """Let an estimator make its request, queue that as an array, and return the API's answer.

    The estimator's session is hooked as ``hook.install`` does it: the estimator can be asked about the array.

    Args:
        estimator: Estimator of the SDK v2, or ModelTrainer of v3.
        wish: The tasks.
        inputs: What ``fit()`` takes as inputs, or ``train()`` as ``input_data_config``.
        job_name: Name of the array, with the SDK v2; None: as the SDK makes it.
        api_url: Else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.

    Raises:
        UnsupportedTrainerError: It trains on this machine, or makes no training job.
        InvalidOptionsError: The values do not fit the tasks, or the estimator's hyperparameters.
        RefusedError: The API refuses the array.
    """
    session = estimator.sagemaker_session
    boto_session = getattr(session, "boto_session", None)
    if not isinstance(boto_session, boto3.Session) or getattr(session, "local_mode", False):
        raise UnsupportedTrainerError(
            "it has no sagemaker_session with a boto_session, or trains on this machine"
        )
    is_v2 = hasattr(estimator, "fit")
    if job_name is not None and not is_v2:
        hint = "Set base_job_name of the trainer: the SDK v3 adds the time to it."
        raise InvalidArgumentError("job_name is for estimators of the SDK v2.", hint=hint)
    if type(session).__name__ != _QUEUE_SESSION:  # that one has hooks of its own
        hook_session(boto_session, session, api_url=api_url)
    wanted = WantedTasks(wish=wish, encode=encoder(estimator))
    with _wanting(wanted):
        if is_v2:
            estimator.fit(inputs, wait=False, **({} if job_name is None else {"job_name": job_name}))
        else:
            estimator.train(**({} if inputs is None else {"input_data_config": inputs}), wait=False)
    if not wanted.answers:
        raise UnsupportedTrainerError("it made no training job")
    return wanted.answers[-1]


def encoder(estimator: Any) -> Encode:  # noqa: ANN401  of an SDK
    """Return the function by which this estimator writes the value of a hyperparameter."""
    return partial(_as_estimator, estimator) if hasattr(estimator, "fit") else _as_trainer


@contextmanager
def _wanting(wanted: WantedTasks) -> Iterator[None]:
    """Turn requests made in the block into the array; an error is ours, not the SDK's about it."""
    token = WANTED.set(wanted)
    try:
        yield
    except Exception:
        if wanted.errors:
            raise wanted.errors[-1] from None
        raise
    finally:
        WANTED.reset(token)


def _as_estimator(estimator: Any, name: str, value: Any) -> str:  # noqa: ANN401  of the SDK v2
    """Write a value as an estimator of the SDK v2 does, which only its class knows: plain or as JSON."""
    probe = copy(estimator)
    if not hasattr(probe, "_hyperparameters"):  # Amazon's algorithms have an attribute a hyperparameter
        setattr(probe, name, value)
        return str(probe.hyperparameters()[name])
    probe._hyperparameters = {}  # noqa: SLF001  a contract test watches
    if any(base.__name__ == _FRAMEWORK for base in type(estimator).__mro__):
        probe._hyperparameters[name] = value  # noqa: SLF001  set_hyperparameters would write it twice
    else:
        probe.set_hyperparameters(**{name: value})
    return str(probe.hyperparameters()[name])


def _as_trainer(name: str, value: Any) -> str:  # noqa: ANN401, ARG001  whatever a program has
    """Write a value as ModelTrainer does: a text as it is, anything else as JSON.

    Source: sagemaker.train.utils.safe_serialize of sagemaker-train 1.27.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value)
    except TypeError:
        return str(value)
