"""The training metrics of a job over all its attempts, for callers who ask with the name they submitted."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from trainmaster_client.client_events import register as register_handler
from trainmaster_client.errors import TrainmasterClientError
from trainmaster_client.queued_jobs import QueuedJobs
from trainmaster_client.views import job_view

NAMESPACE = "/aws/sagemaker/TrainingJobs"
DIMENSION = "TrainingJobName"

_KEPT = "trainmaster_metric_request"
"""Where a call's context keeps what was asked until the answer is there."""


def register(events: Any, queued: QueuedJobs, make_client: Callable[[], Any]) -> None:  # noqa: ANN401  botocore's
    """Join what GetMetricStatistics answers to clients of these events.

    Args:
        events: Of a boto3 session, before its CloudWatch client is made, or of one client.
        queued: Knows which job a name belongs to.
        make_client: Gives a CloudWatch client without these hooks; asked once, at the first need.
    """
    joined = _JoinedMetrics(queued, make_client)
    register_handler(events, "provide-client-params.cloudwatch.GetMetricStatistics", _keep)
    register_handler(events, "after-call.cloudwatch.GetMetricStatistics", joined.complete)


class _JoinedMetrics:
    def __init__(self, queued: QueuedJobs, make_client: Callable[[], Any]) -> None:
        self._queued = queued
        self._make_client = make_client
        self._client: Any = None

    def complete(self, parsed: dict[str, Any], context: Mapping[str, Any], **_: object) -> None:
        """Add the points of the later attempts. Where two have one for a time, the later one's counts."""
        asked = context.get(_KEPT)
        if asked is None or "Error" in parsed:
            return
        points = {point["Timestamp"]: point for point in parsed.get("Datapoints") or ()}
        for name in self._later_attempts(_training_job(asked)):
            points |= {point["Timestamp"]: point for point in self._points(asked, name)}
        parsed["Datapoints"] = list(points.values())

    def _later_attempts(self, name: str) -> Iterator[str]:
        """An API that does not answer is no reason to show no metrics at all."""
        try:
            document = self._queued.find(name)
        except TrainmasterClientError:
            return
        if document is None or document.get("name") != name:
            return
        for attempt in job_view(document).attempts:
            if attempt.training_job_name not in {"", name}:
                yield attempt.training_job_name

    def _points(self, asked: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
        if self._client is None:
            self._client = self._make_client()
        dimensions = [{"Name": DIMENSION, "Value": name}]
        answer = self._client.get_metric_statistics(**{**asked, "Dimensions": dimensions})
        found: list[dict[str, Any]] = answer["Datapoints"]
        return found


def _keep(params: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
    if params.get("Namespace") == NAMESPACE and _training_job(params):
        context[_KEPT] = dict(params)


def _training_job(asked: Mapping[str, Any]) -> str:
    """Empty where something else is asked for."""
    dimensions = asked.get("Dimensions") or ()
    names = [one.get("Value") for one in dimensions if one.get("Name") == DIMENSION]
    return str(names[0]) if len(dimensions) == 1 and names else ""
