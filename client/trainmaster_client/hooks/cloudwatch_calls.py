"""Answer CloudWatch calls over all attempts of a job, for callers who know one training job.

Log loops of the SDKs and of plain boto3 list the streams under the name that was submitted and read those to
their end. Here such a stream continues, after the end of its training job's, with the stream of the same host
in the next attempt. Metrics of the later attempts are added to those of the first.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.awsrequest import AWSResponse

from trainmaster_client.errors import LogsUnreadableError
from trainmaster_client.hooks.botocore_events import Answer, Handler, PlainClients, Where, answered
from trainmaster_client.hooks.botocore_events import register as register_handler
from trainmaster_client.jobs.job_views import Attempt
from trainmaster_client.jobs.queued_jobs import QueuedJobs, RecentlyUsed
from trainmaster_client.logs.log_streams import LOG_GROUP, LogStream, LogStreams

LISTED_SECONDS = 5.0
"""Seconds a list of streams is reused, as CloudWatch allows few such calls a second."""
LATE_LINES = timedelta(minutes=5)
"""No line of an attempt is stamped later than this after its end."""
_MARK = "trainmaster:"
"""Begins our tokens: the mark, a stream's name, a colon (which no such name has), CloudWatch's token."""

NAMESPACE = "/aws/sagemaker/TrainingJobs"
DIMENSION = "TrainingJobName"

_KEPT = "trainmaster_metric_request"
"""Key of a call's context under which the request is kept until the answer is there."""


def register(events: Any, queued: QueuedJobs, clients: PlainClients, *, region: str) -> None:  # noqa: ANN401
    """Join the logs and metrics that clients of these events read.

    Args:
        events: The events of a boto3 session, before its client is made, or of one client (``meta.events``).
        queued: Knows which job a name belongs to.
        clients: Read what is joined.
        region: The queue's region. Clients of another region are left alone.
    """
    for event, handler in handlers(queued, clients, region=region):
        register_handler(events, event, handler)


def handlers(queued: QueuedJobs, clients: PlainClients, *, region: str) -> Iterator[tuple[str, Handler]]:
    logs, metrics = _JoinedLogs(queued, clients, region), _JoinedMetrics(queued, clients, region)
    yield "before-call.cloudwatch-logs.DescribeLogStreams", logs.streams
    yield "before-call.cloudwatch-logs.GetLogEvents", logs.events
    yield "provide-client-params.cloudwatch.GetMetricStatistics", _keep
    yield "after-call.cloudwatch.GetMetricStatistics", metrics.complete
    yield "provide-client-params.cloudwatch.GetMetricData", _keep_queries
    yield "after-call.cloudwatch.GetMetricData", metrics.complete_data


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A reader's position in the joined stream of a host."""

    stream: str
    token: str | None

    @classmethod
    def asked(cls, stream: str, token: str | None) -> "_Place":
        """Read the position from a token. One without our mark is CloudWatch's own, for the stream itself."""
        if not token or not token.startswith(_MARK):
            return cls(stream=stream, token=token)
        stream_name, _, real = token.removeprefix(_MARK).partition(":")
        return cls(stream=stream_name, token=real or None)

    @property
    def text(self) -> str:
        return f"{_MARK}{self.stream}:{self.token or ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The streams of one attempt, as they were listed."""

    streams: list[LogStream]
    until: float
    """When the list is too old, in seconds of the monotonic clock."""
    after_end: bool

    def stands(self, now: float, *, has_ended: bool) -> bool:
        return now < self.until and (self.after_end or not has_ended)


class _JoinedLogs:
    def __init__(self, queued: QueuedJobs, clients: PlainClients, region: str) -> None:
        self._queued = queued
        self._clients = clients
        self._region = region
        self._listed = RecentlyUsed[_Listing]()

    def streams(self, params: Mapping[str, Any], context: Mapping[str, Any], **_: object) -> Answer | None:
        """Answer one stream per host, named after the first attempt; None if CloudWatch is to answer."""
        request = _asked(params)
        prefix = request.get("logStreamNamePrefix") or ""
        name, slash, _rest = prefix.partition("/")
        attempts = self._attempts_to_join(name, context) if slash else None
        if attempts is None:
            return None
        hosts: dict[str, LogStream] = {}
        for stream in self._all_streams(attempts, self._reader(params, context)):
            hosts.setdefault(stream.host, stream)
        names = [f"{name}/{stream.name.partition('/')[2]}" for stream in hosts.values()]
        matches = [{"logStreamName": full_name} for full_name in names if full_name.startswith(prefix)]
        return answered({"logStreams": matches})

    def events(self, params: Mapping[str, Any], context: Mapping[str, Any], **_: object) -> Answer | None:
        """Answer the next events of a host; None if CloudWatch is to answer, as for reads from the end."""
        request = _asked(params)
        stream = LogStream.parse(request.get("logStreamName") or "")
        place = _Place.asked(request.get("logStreamName") or "", request.get("nextToken"))
        has_our_token = request.get("nextToken", "").startswith(_MARK)
        if stream is None or not (request.get("startFromHead") or has_our_token):
            return None
        attempts = self._attempts_to_join(stream.name.partition("/")[0], context)
        if attempts is None:
            return None
        reader = self._reader(params, context)
        streams = self._all_streams(_since(attempts, request), reader)
        chain = [host_stream.name for host_stream in streams if host_stream.host == stream.host]
        options: dict[str, int] = {
            key: request[key] for key in ("startTime", "endTime", "limit") if key in request
        }
        return _next_events(chain, place, reader, options)

    def _attempts_to_join(self, name: str, context: Mapping[str, Any]) -> Sequence[Attempt] | None:
        """Return the attempts of the job with this very name; None where there is nothing to join."""
        if context["client_region"] != self._region:
            return None
        attempts = self._queued.attempts(name)
        return attempts if any(attempt.training_job_name != name for attempt in attempts) else None

    def _all_streams(self, attempts: Sequence[Attempt], reader: LogStreams) -> Iterator[LogStream]:
        for number, attempt in enumerate(attempts, start=1):
            yield from self._streams_of(attempt, reader, is_followed=number < len(attempts))

    def _streams_of(self, attempt: Attempt, reader: LogStreams, *, is_followed: bool) -> list[LogStream]:
        """List an attempt's streams, again after some seconds and at once if the attempt has ended since.

        The loops of the SDKs look once more when the job has ended, and never again: a host that wrote its
        first line between the last list and the end would not be read at all. An attempt that has ended and
        is followed by another is listed once more and never again.
        """
        name, has_ended = attempt.training_job_name, attempt.ended_at is not None
        listed = self._listed.get(name)
        if listed is None or not listed.stands(time.monotonic(), has_ended=has_ended):
            with _the_callers_errors():
                streams = reader.of(name)
            until = float("inf") if has_ended and is_followed else time.monotonic() + LISTED_SECONDS
            listed = _Listing(streams=streams, until=until, after_end=has_ended)
            self._listed.keep(name, listed)
        return listed.streams

    def _reader(self, params: Mapping[str, Any], context: Mapping[str, Any]) -> LogStreams:
        return LogStreams(self._clients.of("logs", Where.called(params["url"], context)))


def _next_events(chain: list[str], place: _Place, reader: LogStreams, options: dict[str, int]) -> Answer:
    """Return the first page that has events, from the position on."""
    begin = chain.index(place.stream) if place.stream in chain else 0
    events: list[Any] = []
    for name in chain[begin:]:
        token = place.token if name == place.stream else None
        with _the_callers_errors():
            page = reader.next_page(name, token, **options)
        place, events = _Place(stream=name, token=page.forward), page.events
        if events:
            break
    return answered({"events": events, "nextForwardToken": place.text, "nextBackwardToken": place.text})


@contextmanager
def _the_callers_errors() -> Iterator[None]:
    """Raise the error of the underlying call, as the caller's own call would have raised it."""
    try:
        yield
    except LogsUnreadableError as error:
        raise (error.__cause__ or error) from None


def _asked(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request if it reads the log group of training jobs, else an empty one."""
    request: dict[str, Any] = json.loads(params["body"])
    return request if request.get("logGroupName") == LOG_GROUP else {}


def _since(attempts: Sequence[Attempt], request: dict[str, Any]) -> Sequence[Attempt]:
    """Return the attempts that may have lines after the request's start time, at least the last one."""
    since = datetime.fromtimestamp(request.get("startTime", 0) / 1000, UTC)
    ends = ((attempt, attempt.ended_at) for attempt in attempts)
    recent = [attempt for attempt, end in ends if end is None or end + LATE_LINES >= since]
    return recent or attempts[-1:]


class _JoinedMetrics:
    def __init__(self, queued: QueuedJobs, clients: PlainClients, region: str) -> None:
        self._queued = queued
        self._clients = clients
        self._region = region

    def complete(
        self, http_response: AWSResponse, parsed: dict[str, Any], context: Mapping[str, Any], **_: object
    ) -> None:
        """Add the points of the later attempts; if two have a point for one time, the later one's counts."""
        request = self._asked(parsed, context)
        if request is None:
            return
        points = {point["Timestamp"]: point for point in parsed.get("Datapoints") or ()}
        client = self._client(http_response, context)
        for name in self._later(_training_job(request)):
            again = {**request, "Dimensions": [{"Name": DIMENSION, "Value": name}]}
            later_points = client.get_metric_statistics(**again)["Datapoints"]
            points |= {point["Timestamp"]: point for point in later_points}
        parsed["Datapoints"] = list(points.values())

    def complete_data(
        self, http_response: AWSResponse, parsed: dict[str, Any], context: Mapping[str, Any], **_: object
    ) -> None:
        """Add the later attempts to GetMetricData: its queries and expressions are repeated for each."""
        request = self._asked(parsed, context)
        if request is None:
            return
        client = self._client(http_response, context)
        series = {result["Id"]: _by_time(result) for result in parsed.get("MetricDataResults") or ()}
        for first in sorted(_training_jobs(request)):
            for name in self._later(first):
                pages = client.get_paginator("get_metric_data").paginate(**_renamed(request, first, name))
                for result in (result for page in pages for result in page["MetricDataResults"]):
                    series.setdefault(result["Id"], {}).update(_by_time(result))
        newest_first = request.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        for result in parsed.get("MetricDataResults") or ():
            points = sorted(series[result["Id"]].items(), reverse=newest_first)
            result["Timestamps"], result["Values"] = [at for at, _ in points], [value for _, value in points]

    def _asked(self, parsed: dict[str, Any], context: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the request that was kept; None where there is nothing to join."""
        if "Error" in parsed or context["client_region"] != self._region:
            return None
        return context.get(_KEPT)

    def _later(self, first: str) -> list[str]:
        """List the training jobs of the attempts after the one that has the job's name."""
        names = [attempt.training_job_name for attempt in self._queued.attempts(first)]
        return [name for name in names if name != first]

    def _client(self, http_response: AWSResponse, context: Mapping[str, Any]) -> Any:  # noqa: ANN401  boto3's
        return self._clients.of("cloudwatch", Where.called(http_response.url, context))


def _keep(params: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
    if params.get("Namespace") == NAMESPACE and _training_job(params):
        context[_KEPT] = dict(params)


def _keep_queries(params: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
    """Keep the request of a first page only: the later attempts are added to that one."""
    if _training_jobs(params) and not params.get("NextToken"):
        context[_KEPT] = dict(params)


def _training_job(request: Mapping[str, Any]) -> str:
    """Return the name of the training job in the request's dimensions; "" if it is about something else."""
    dimensions = request.get("Dimensions") or ()
    names = [dimension.get("Value") for dimension in dimensions if dimension.get("Name") == DIMENSION]
    return str(names[0]) if len(dimensions) == 1 and names else ""


def _training_jobs(request: Mapping[str, Any]) -> set[str]:
    return {_queried_job(query) for query in request.get("MetricDataQueries") or ()} - {""}


def _queried_job(query: Mapping[str, Any]) -> str:
    metric = (query.get("MetricStat") or {}).get("Metric") or {}
    return _training_job(metric) if metric.get("Namespace") == NAMESPACE else ""


def _renamed(request: Mapping[str, Any], first: str, name: str) -> dict[str, Any]:
    """Return the same queries for another training job."""
    queries = deepcopy(list(request["MetricDataQueries"]))
    for query in queries:
        if _queried_job(query) == first:
            query["MetricStat"]["Metric"]["Dimensions"] = [{"Name": DIMENSION, "Value": name}]
    return {**request, "MetricDataQueries": queries}


def _by_time(result: Mapping[str, Any]) -> dict[datetime, float]:
    return dict(zip(result["Timestamps"], result["Values"], strict=True))
