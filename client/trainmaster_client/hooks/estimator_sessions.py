"""Sessions of the SageMaker SDKs: hooked with the clients that the SDK has made of them already."""

import sys
from typing import Any

import boto3

from trainmaster_client.hooks.training_job_calls import OnUnreachable, hooks_of

_CLIENTS = "sagemaker.core.utils.utils"
"""The module with the clients that sagemaker-core keeps for each boto3 session."""


def hook_session(
    boto_session: boto3.Session,
    sagemaker_session: Any,  # noqa: ANN401  an SDK's Session; None: only the SDK's own clients
    *,
    api_url: str | None,
    on_unreachable: OnUnreachable = "raise",
) -> None:
    """Hook the session for clients to come, and the clients that the SDK has made of it already."""
    hooks = hooks_of(boto_session, api_url=api_url, on_unreachable=on_unreachable)
    hooks.register(boto_session.events)
    made = getattr(sys.modules.get(_CLIENTS), "SageMakerClient", None)
    clients = [
        getattr(sagemaker_session, "sagemaker_client", None),
        made(session=boto_session).get_client("sagemaker") if made else None,
    ]
    for client in clients:
        if client is not None:
            hooks.register(client.meta.events)
