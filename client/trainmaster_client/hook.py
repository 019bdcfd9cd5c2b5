"""The queue behind ``CreateTrainingJob``, for every caller of boto3: SDK v3, SDK v2, scripts.

``install()`` hooks the whole process: each session of boto3, botocore, aiobotocore and aioboto3, made before
or later. ``install(boto_session)`` hooks clients made from that session afterwards. CreateTrainingJob then
submits to the queue; DescribeTrainingJob, StopTrainingJob and ListTags of a job in the queue are answered
for the job; its log streams and training metrics go on over its attempts. CreateHyperParameterTuningJob runs
a study in this process, whose trials are jobs. All other calls, and jobs that are
not in the queue, go where they always went. Clients of another region than the API's are left alone, with a
warning when one starts a training job.
"""

import re
from typing import Any

import boto3
import botocore

from trainmaster_client.api import find_api_url
from trainmaster_client.bypasses import QueueBypassWarning, RoundTheQueueWarning
from trainmaster_client.errors import UnsupportedBotocoreError
from trainmaster_client.hooks.process_hooks import PROCESS
from trainmaster_client.hooks.session_hooks import ProcessOptions
from trainmaster_client.hooks.training_job_calls import OnUnreachable, check_on_unreachable, hooks_of
from trainmaster_client.http.transport import checked_url

__all__ = [
    "OnUnreachable",
    "QueueBypassWarning",
    "RoundTheQueueWarning",
    "install",
    "install_on_client",
    "uninstall",
]

_FLOOR = (1, 40)
"""Oldest boto3 and botocore that tests run with, as in pyproject.toml."""


def install(
    boto_session: boto3.Session | None = None,
    *,
    api_url: str | None = None,
    on_unreachable: OnUnreachable = "raise",
) -> None:
    """Queue what this process trains, or what clients train that are made from this session from now on.

    Said again, the last time counts; for a session and its clients its own ``install`` counts.

    Refusals are botocore's ClientError: ValidationException (a bad request, or against the policy, every
    violation in the message), AccessDeniedException, ResourceInUse (the name is taken), ThrottlingException,
    ServiceUnavailable (no answer from the API).

    Args:
        boto_session: None: each session of the process, of boto3, botocore, aiobotocore and aioboto3, made
            before or later, and the clients that exist. Each asks with its own credentials. A client that
            was not found warns with a QueueBypassWarning when it starts a training job.
        api_url: Else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.
        on_unreachable: ``direct``: where the API gives no answer, bypass the queue, with a
            QueueBypassWarning. It then takes instances that the queue does not count.
    """
    _check_botocore()
    if boto_session is not None:
        hooks_of(boto_session, api_url=api_url, on_unreachable=on_unreachable).register(boto_session.events)
        return
    check_on_unreachable(on_unreachable)
    url = find_api_url(api_url, boto3.DEFAULT_SESSION or boto3.Session())
    checked_url(url)
    PROCESS.switch_on(ProcessOptions(api_url=url, on_unreachable=on_unreachable))
    PROCESS.hook_existing()


def uninstall() -> None:
    """Undo ``install()``, for clients that exist too. What ``install(boto_session)`` hooked stays so."""
    PROCESS.switch_off()


def install_on_client(
    client: Any,  # noqa: ANN401  boto3's
    boto_session: boto3.Session | None = None,
    *,
    api_url: str | None = None,
    on_unreachable: OnUnreachable = "raise",
) -> None:
    """Install the hooks on one existing client of SageMaker, CloudWatch or CloudWatch Logs.

    ``boto_session`` signs what is asked of the queue; it should be the one that the client was made from.
    """
    _check_botocore()
    session = boto_session or _default_session()
    hooks_of(session, api_url=api_url, on_unreachable=on_unreachable).register(client.meta.events)


def _check_botocore() -> None:
    """Raise UnsupportedBotocoreError if the installed botocore is older than the floor."""
    installed = tuple(int(part) for part in re.findall(r"\d+", botocore.__version__)[:2])
    if installed < _FLOOR:
        raise UnsupportedBotocoreError(botocore.__version__, floor=".".join(map(str, _FLOOR)))


def _default_session() -> boto3.Session:
    if boto3.DEFAULT_SESSION is None:
        boto3.setup_default_session()
    session = boto3.DEFAULT_SESSION
    assert session is not None
    return session
