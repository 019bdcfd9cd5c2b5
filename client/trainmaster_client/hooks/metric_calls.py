"""The training metrics of a job over all its attempts, for callers who ask with the name they submitted."""

from collections.abc import Mapping
from typing import Any

from botocore.awsrequest import AWSResponse

from trainmaster_client.hooks.botocore_events import PlainClients, Where
from trainmaster_client.hooks.botocore_events import register as register_handler
from trainmaster_client.jobs.queued_jobs import QueuedJobs

NAMESPACE = "/aws/sagemaker/TrainingJobs"
DIMENSION = "TrainingJobName"

_KEPT = "trainmaster_metric_request"
"""Where a call's context keeps what was asked until the answer is there."""


def register(events: Any, queued: QueuedJobs, clients: PlainClients, *, region: str) -> None:  # noqa: ANN401
    """Join what GetMetricStatistics answers to clients of these events.

    Args:
        events: Of a boto3 session, before its CloudWatch client is made, or of one client.
        queued: Knows which job a name belongs to.
        clients: Read what is joined.
        region: The queue's. Clients of another one are left alone.
    """
    joined = _JoinedMetrics(queued, clients, region)
    register_handler(events, "provide-client-params.cloudwatch.GetMetricStatistics", _keep)
    register_handler(events, "after-call.cloudwatch.GetMetricStatistics", joined.complete)


class _JoinedMetrics:
    def __init__(self, queued: QueuedJobs, clients: PlainClients, region: str) -> None:
        self._queued = queued
        self._clients = clients
        self._region = region

    def complete(
        self, http_response: AWSResponse, parsed: dict[str, Any], context: Mapping[str, Any], **_: object
    ) -> None:
        """Add the points of the later attempts. Where two have one for a time, the later one's counts."""
        asked = context.get(_KEPT)
        if asked is None or "Error" in parsed or context["client_region"] != self._region:
            return
        points = {point["Timestamp"]: point for point in parsed.get("Datapoints") or ()}
        first = _training_job(asked)
        names = [one.training_job_name for one in self._queued.attempts(first)]
        for name in (one for one in names if one != first):
            client = self._clients.of("cloudwatch", Where.called(http_response.url, context))
            points |= {point["Timestamp"]: point for point in _points(client, asked, name)}
        parsed["Datapoints"] = list(points.values())


def _points(client: Any, asked: Mapping[str, Any], name: str) -> list[dict[str, Any]]:  # noqa: ANN401  boto3's
    dimensions = [{"Name": DIMENSION, "Value": name}]
    found: list[dict[str, Any]] = client.get_metric_statistics(**{**asked, "Dimensions": dimensions})[
        "Datapoints"
    ]
    return found


def _keep(params: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
    if params.get("Namespace") == NAMESPACE and _training_job(params):
        context[_KEPT] = dict(params)


def _training_job(asked: Mapping[str, Any]) -> str:
    """Empty where something else is asked for."""
    dimensions = asked.get("Dimensions") or ()
    names = [one.get("Value") for one in dimensions if one.get("Name") == DIMENSION]
    return str(names[0]) if len(dimensions) == 1 and names else ""
