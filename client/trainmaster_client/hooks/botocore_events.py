"""Our handlers among the events of boto3 clients: each there once, and clients without any of them.

botocore copies a session's handlers into each client that is made from it. So a handler that is registered
later does not reach a client that exists, and one that a client loses stays with the session.
"""

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

import boto3
import botocore.session

Handler: TypeAlias = Callable[..., Any]
"""As botocore calls it: with keyword arguments, of which a handler names those it needs."""


def register(events: Any, event: str, handler: Handler) -> None:  # noqa: ANN401  botocore's emitters
    """Instead of what we registered for this event before; the handlers of others stay.

    Args:
        events: Of a boto3 session, or a client's ``meta.events``.
        event: As in ``before-call.sagemaker.CreateTrainingJob``.
        handler: What is called.
    """
    events.unregister(event, unique_id=_id(event))
    events.register(event, handler, unique_id=_id(event))


def plain_client(boto_session: boto3.Session, service: str, **options: Any) -> Any:  # noqa: ANN401  boto3's
    """A client that none of our handlers sees: what it asks is asked of AWS.

    ``options`` are those of ``boto3.Session.client``.
    """
    client: Any = boto_session.client(service, **options)  # type: ignore[call-overload]
    for event in HOOKED_EVENTS:
        client.meta.events.unregister(event, unique_id=_id(event))
    return client


def like_the_default() -> boto3.Session:
    """A session with the profile, region and credentials of boto3's default one, and events of its own."""
    default = boto3.DEFAULT_SESSION
    if default is None:
        return boto3.Session()
    profile = None if default.profile_name == "default" else default.profile_name
    own = botocore.session.Session(profile=profile)
    own.register_component("credential_provider", _CredentialsOf(default))
    return boto3.Session(botocore_session=own, region_name=default.region_name)


@dataclass(frozen=True, slots=True)
class _CredentialsOf:
    """Botocore's chain of providers, for a session that signs as another one does."""

    session: boto3.Session

    def load_credentials(self) -> Any:  # noqa: ANN401  botocore's; None where there are none
        return self.session.get_credentials()


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Region and endpoint of a call."""

    region: str
    endpoint_url: str | None
    """None: where the session sends such calls."""

    @classmethod
    def called(cls, url: str | None, context: Mapping[str, Any]) -> Self:
        """``url`` is that of the request, none where a stub answered; ``context`` is as handlers get it."""
        parts = urlsplit(url or "")
        endpoint_url = f"{parts.scheme}://{parts.netloc}" if parts.netloc else None
        return cls(region=context["client_region"], endpoint_url=endpoint_url)


class PlainClients:
    """The plain clients of a session, each made at its first need, for the place that the caller's was.

    boto3 sessions make one client at a time, and a forked process must not read from its parent's sockets.
    """

    def __init__(self, boto_session: boto3.Session) -> None:
        self._session = boto_session
        self._made: dict[tuple[int, str, Where], Any] = {}
        self._making = threading.Lock()

    def of(self, service: str, where: Where) -> Any:  # noqa: ANN401  boto3's
        key = (os.getpid(), service, where)
        if key in self._made:
            return self._made[key]
        with self._making:
            if key not in self._made:
                self._made[key] = plain_client(
                    self._session, service, region_name=where.region, endpoint_url=where.endpoint_url
                )
            return self._made[key]


def _id(event: str) -> str:
    """Unlike any other of ours: botocore keeps one handler for an id, whatever its event."""
    phase, _, rest = event.partition(".")
    operation = rest.rpartition(".")[2]
    return f"trainmaster-{operation}" if phase == "before-call" else f"trainmaster-{phase}-{operation}"


HOOKED_EVENTS = (
    "before-call.sagemaker.CreateTrainingJob",
    "before-call.sagemaker.DescribeTrainingJob",
    "before-call.sagemaker.StopTrainingJob",
    "before-call.sagemaker.ListTags",
    "before-call.sagemaker.CreateHyperParameterTuningJob",
    "before-call.sagemaker.CreatePipeline",
    "before-call.sagemaker.UpdatePipeline",
    "before-call.batch.SubmitServiceJob",
    "before-call.cloudwatch-logs.DescribeLogStreams",
    "before-call.cloudwatch-logs.GetLogEvents",
    "provide-client-params.cloudwatch.GetMetricStatistics",
    "after-call.cloudwatch.GetMetricStatistics",
)
"""Every event that any module of ours registers a handler for."""
