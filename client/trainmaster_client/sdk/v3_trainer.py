"""ModelTrainer of the SDK v3 through the queue: ``queue(trainer, priority=5).train()``.

``queue`` hooks the boto3 session of the trainer's SageMaker session; its code stays as it is. All that is
trained with that session goes through the queue from then on, also by other trainers. The SDK is not
imported before it is needed: it takes seconds, and a machine with the SDK v2 has none.
"""

import sys
from functools import wraps
from typing import Any, Unpack

import boto3

from trainmaster_client.errors import UnsupportedTrainerError
from trainmaster_client.hooks.estimator_sessions import hook_session
from trainmaster_client.hooks.training_job_calls import OnUnreachable
from trainmaster_client.launcher import LAUNCHER
from trainmaster_client.sdk.job_tags import JobOptions, job_tags

_PIPELINES = "sagemaker.core.workflow.pipeline_context"


def queue(
    trainer: Any,  # noqa: ANN401  ModelTrainer of the SDK v3, which is not installed with v2
    *,
    api_url: str | None = None,
    on_unreachable: OnUnreachable = "raise",
    **options: Unpack[JobOptions],
) -> Any:  # noqa: ANN401  likewise
    """Make a ModelTrainer train through the queue, with these options; answers the trainer.

    Said again, the last time counts; an option replaces a tag of the same key.

    Args:
        trainer: Its other tags, and all else of it, stay.
        api_url: Else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.
        on_unreachable: As for ``trainmaster_client.hook.install``.
        options: See ``trainmaster_client.job_options.JobOptions``.

    Raises:
        UnsupportedTrainerError: It trains on this machine, or is a step of a pipeline.
        InvalidOptionsError: Lists all that is wrong with the options.
    """
    wanted = job_tags(**options)
    boto_session = _boto_session_of(trainer)
    hook_session(boto_session, trainer.sagemaker_session, api_url=api_url, on_unreachable=on_unreachable)
    from sagemaker.core.shapes import Tag  # noqa: PLC0415  where there is a ModelTrainer, there is this

    ours = {tag["Key"] for tag in wanted}
    kept = [tag for tag in trainer.tags or [] if _key(tag) not in ours]
    trainer.tags = [*kept, *(Tag(key=tag["Key"], value=tag["Value"]) for tag in wanted)] or None
    return trainer


def attach(
    name: str,
    boto_session: boto3.Session | None = None,
    *,
    api_url: str | None = None,
    on_unreachable: OnUnreachable = "raise",
) -> Any:  # noqa: ANN401  TrainingJob of the SDK v3
    """Return the SDK's TrainingJob of a job that was submitted before, here or elsewhere.

    Its ``wait(logs=True)``, ``refresh()`` and ``stop()`` are about the job in the queue, over all attempts.
    """
    from sagemaker.core.resources import TrainingJob  # noqa: PLC0415  takes seconds

    session = boto_session or boto3.Session()
    hook_session(session, None, api_url=api_url, on_unreachable=on_unreachable)
    return TrainingJob.get(training_job_name=name, session=session)


def use_launcher(trainer: Any) -> None:  # noqa: ANN401  ModelTrainer
    """Make a ModelTrainer start its jobs with the launcher, so that its script hears SIGTERM.

    A ModelTrainer with ``source_code`` always asks for the SDK's own shell script, so its request is changed
    after it is made: code and script stay where the SDK puts them.

    Raises:
        UnsupportedTrainerError: It has no ``source_code`` with an ``entry_script``, or a ``distributed``
            (the launcher starts the ranks), or the SDK makes requests in another way.
    """
    source = getattr(trainer, "source_code", None)
    if getattr(source, "entry_script", None) is None or getattr(source, "command", None):
        raise UnsupportedTrainerError("it needs source_code with an entry_script and without a command")
    if getattr(trainer, "distributed", None) is not None:
        raise UnsupportedTrainerError("leave distributed out: the launcher starts one rank per GPU itself")
    make = getattr(trainer, "_create_training_job_args", None)
    if make is None:
        raise UnsupportedTrainerError("it has no _create_training_job_args, as that of sagemaker-train 1.27")

    @wraps(make)
    def with_launcher(*args: Any, **options: Any) -> Any:  # noqa: ANN401  the SDK's
        request = make(*args, **options)
        _set_entrypoint(request)
        return request

    # A pydantic model takes no new attributes, but what is in its dictionary comes before its class.
    trainer.__dict__["_create_training_job_args"] = with_launcher


def _boto_session_of(trainer: Any) -> boto3.Session:  # noqa: ANN401  ModelTrainer
    mode = getattr(getattr(trainer, "training_mode", None), "value", "")
    session = getattr(trainer, "sagemaker_session", None)
    if mode == "LOCAL_CONTAINER":
        raise UnsupportedTrainerError("it trains on this machine (Mode.LOCAL_CONTAINER), not on SageMaker")
    if isinstance(session, getattr(sys.modules.get(_PIPELINES), "PipelineSession", ())):
        raise UnsupportedTrainerError(
            "with a PipelineSession it makes a step; the pipeline starts that itself"
        )
    boto_session = getattr(session, "boto_session", None)
    if not isinstance(boto_session, boto3.Session):
        raise UnsupportedTrainerError("it has no sagemaker_session with a boto_session")
    return boto_session


def _key(tag: Any) -> str:  # noqa: ANN401  the SDK's Tag, or a dictionary
    if isinstance(tag, dict):
        return str(tag.get("key") or tag.get("Key"))
    return str(tag.key)


def _set_entrypoint(request: dict[str, Any]) -> None:
    """Set the launcher as entrypoint, in the SDK's form of a request or in boto3's, which pipelines take."""
    if "algorithm_specification" in request:
        algorithm = request["algorithm_specification"]
        algorithm.container_entrypoint, algorithm.container_arguments = list(LAUNCHER), None
    elif "AlgorithmSpecification" in request:
        request["AlgorithmSpecification"]["ContainerEntrypoint"] = list(LAUNCHER)
        request["AlgorithmSpecification"].pop("ContainerArguments", None)
    else:
        raise UnsupportedTrainerError("its requests have no algorithm specification")
