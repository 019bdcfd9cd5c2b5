"""The queue behind ``CreateTrainingJob``, for every caller of boto3: SDK v3, SDK v2, scripts.

``install(boto_session)`` hooks clients made from the session afterwards. CreateTrainingJob then submits to
the queue; DescribeTrainingJob, StopTrainingJob and ListTags of a job in the queue are answered for the job;
its log streams and training metrics go on over its attempts. All other calls, and jobs that are not in the
queue, go where they always went. Clients of another region than the API's are left alone, with a warning
when one starts a training job.
"""

from typing import Any

import boto3

from trainmaster_client.bypasses import QueueBypassWarning, RoundTheQueueWarning
from trainmaster_client.hooks.training_job_calls import OnUnreachable, hooks_of

__all__ = ["OnUnreachable", "QueueBypassWarning", "RoundTheQueueWarning", "install", "install_on_client"]


def install(
    boto_session: boto3.Session | None = None,
    *,
    api_url: str | None = None,
    on_unreachable: OnUnreachable = "raise",
) -> None:
    """Queue what clients start that are made from this session from now on. Said again, the last time counts.

    Refusals are botocore's ClientError: ValidationException (a bad request, or against the policy, every
    violation in the message), AccessDeniedException, ResourceInUse (the name is taken), ThrottlingException,
    ServiceUnavailable (no answer from the API).

    Args:
        boto_session: None: boto3's default session, which ``boto3.client()`` uses.
        api_url: Else ``TRAINMASTER_API_URL``, else SSM parameter ``/trainmaster/api-url``.
        on_unreachable: ``direct``: where the API gives no answer, bypass the queue, with a
            QueueBypassWarning. It then takes instances that the queue does not count.
    """
    session = boto_session or _default_session()
    hooks_of(session, api_url=api_url, on_unreachable=on_unreachable).register(session.events)


def install_on_client(
    client: Any,  # noqa: ANN401  boto3's
    boto_session: boto3.Session | None = None,
    *,
    api_url: str | None = None,
    on_unreachable: OnUnreachable = "raise",
) -> None:
    """As ``install``, for one client that exists: for SageMaker, CloudWatch or CloudWatch Logs.

    ``boto_session`` signs what is asked of the queue; it should be the one that the client was made from.
    """
    session = boto_session or _default_session()
    hooks_of(session, api_url=api_url, on_unreachable=on_unreachable).register(client.meta.events)


def _default_session() -> boto3.Session:
    if boto3.DEFAULT_SESSION is None:
        boto3.setup_default_session()
    session = boto3.DEFAULT_SESSION
    assert session is not None
    return session
