"""CloudWatch's calls: logs and metrics of a job over all attempts, for callers who know one training job.

Log loops of the SDKs and of plain boto3 list the streams under the name that was submitted and read those to
their end. Here such a stream goes on, where its training job's ends, with the stream of the same host in the
next attempt. Metrics of the later attempts are added to those of the first.
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
"""How long a list of streams is taken for true: CloudWatch allows few such calls a second."""
LATE_LINES = timedelta(minutes=5)
"""Lines of an attempt are not stamped later than this after its end."""
_MARK = "trainmaster:"
"""Begins our tokens: the mark, a stream's name, a colon (which no such name has), CloudWatch's token."""


NAMESPACE = "/aws/sagemaker/TrainingJobs"
DIMENSION = "TrainingJobName"

_KEPT = "trainmaster_metric_request"
"""Where a call's context keeps what was asked until the answer is there."""


def register(events: Any, queued: QueuedJobs, clients: PlainClients, *, region: str) -> None:  # noqa: ANN401
    """Join the logs and metrics that clients of these events read.

    Args:
        events: Of a boto3 session, before its client is made, or of one client (``meta.events``).
        queued: Knows which job a name belongs to.
        clients: Read what is joined.
        region: The queue's. Clients of another one are left alone.
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
    """Where a reader stands in the joined stream of a host."""

    stream: str
    token: str | None

    @classmethod
    def asked(cls, stream: str, token: str | None) -> "_Place":
        """A token that is not ours is CloudWatch's, of the stream itself."""
        if not token or not token.startswith(_MARK):
            return cls(stream=stream, token=token)
        found, _, real = token.removeprefix(_MARK).partition(":")
        return cls(stream=found, token=real or None)

    @property
    def text(self) -> str:
        return f"{_MARK}{self.stream}:{self.token or ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listing:
    """The streams of one attempt, as they were listed."""

    streams: list[LogStream]
    until: float
    """Of the monotonic clock."""
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
        """None: CloudWatch answers. Else one stream a host, named as if it were the first attempt's."""
        asked = _asked(params)
        prefix = asked.get("logStreamNamePrefix") or ""
        name, slash, _rest = prefix.partition("/")
        attempts = self._attempts_to_join(name, context) if slash else None
        if attempts is None:
            return None
        hosts: dict[str, LogStream] = {}
        for stream in self._all_streams(attempts, self._reader(params, context)):
            hosts.setdefault(stream.host, stream)
        names = [f"{name}/{one.name.partition('/')[2]}" for one in hosts.values()]
        return answered({"logStreams": [{"logStreamName": one} for one in names if one.startswith(prefix)]})

    def events(self, params: Mapping[str, Any], context: Mapping[str, Any], **_: object) -> Answer | None:
        """None: CloudWatch answers, as it does to whoever reads from the end backwards."""
        asked = _asked(params)
        stream = LogStream.parse(asked.get("logStreamName") or "")
        place = _Place.asked(asked.get("logStreamName") or "", asked.get("nextToken"))
        if stream is None or not (asked.get("startFromHead") or asked.get("nextToken", "").startswith(_MARK)):
            return None
        attempts = self._attempts_to_join(stream.name.partition("/")[0], context)
        if attempts is None:
            return None
        reader = self._reader(params, context)
        streams = self._all_streams(_since(attempts, asked), reader)
        chain = [one.name for one in streams if one.host == stream.host]
        options: dict[str, int] = {
            key: asked[key] for key in ("startTime", "endTime", "limit") if key in asked
        }
        return _next_events(chain, place, reader, options)

    def _attempts_to_join(self, name: str, context: Mapping[str, Any]) -> Sequence[Attempt] | None:
        """Of the job with this very name; None where there is nothing to join."""
        if context["client_region"] != self._region:
            return None
        attempts = self._queued.attempts(name)
        return attempts if any(one.training_job_name != name for one in attempts) else None

    def _all_streams(self, attempts: Sequence[Attempt], reader: LogStreams) -> Iterator[LogStream]:
        for number, attempt in enumerate(attempts, start=1):
            yield from self._streams_of(attempt, reader, is_followed=number < len(attempts))

    def _streams_of(self, attempt: Attempt, reader: LogStreams, *, is_followed: bool) -> list[LogStream]:
        """Listed again after some seconds, and at once where the attempt has ended since.

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
    """The first page that holds something, from the place on."""
    begin = chain.index(place.stream) if place.stream in chain else 0
    found: list[Any] = []
    for name in chain[begin:]:
        token = place.token if name == place.stream else None
        with _the_callers_errors():
            page = reader.next_page(name, token, **options)
        place, found = _Place(stream=name, token=page.forward), page.events
        if found:
            break
    return answered({"events": found, "nextForwardToken": place.text, "nextBackwardToken": place.text})


@contextmanager
def _the_callers_errors() -> Iterator[None]:
    """Those that the caller's own call would have raised."""
    try:
        yield
    except LogsUnreadableError as error:
        raise (error.__cause__ or error) from None


def _asked(params: Mapping[str, Any]) -> dict[str, Any]:
    """The request, of the log group of training jobs; of any other nothing."""
    asked: dict[str, Any] = json.loads(params["body"])
    return asked if asked.get("logGroupName") == LOG_GROUP else {}


def _since(attempts: Sequence[Attempt], asked: dict[str, Any]) -> Sequence[Attempt]:
    """Those that may hold lines of the time asked for; the last one in any case."""
    since = datetime.fromtimestamp(asked.get("startTime", 0) / 1000, UTC)
    recent = [one for one in attempts if one.ended_at is None or one.ended_at + LATE_LINES >= since]
    return recent or attempts[-1:]


class _JoinedMetrics:
    def __init__(self, queued: QueuedJobs, clients: PlainClients, region: str) -> None:
        self._queued = queued
        self._clients = clients
        self._region = region

    def complete(
        self, http_response: AWSResponse, parsed: dict[str, Any], context: Mapping[str, Any], **_: object
    ) -> None:
        """Add the points of the later attempts. Where two have one for a time, the later one's counts."""
        asked = self._asked(parsed, context)
        if asked is None:
            return
        points = {point["Timestamp"]: point for point in parsed.get("Datapoints") or ()}
        client = self._client(http_response, context)
        for name in self._later(_training_job(asked)):
            again = {**asked, "Dimensions": [{"Name": DIMENSION, "Value": name}]}
            found = client.get_metric_statistics(**again)["Datapoints"]
            points |= {point["Timestamp"]: point for point in found}
        parsed["Datapoints"] = list(points.values())

    def complete_data(
        self, http_response: AWSResponse, parsed: dict[str, Any], context: Mapping[str, Any], **_: object
    ) -> None:
        """The same for GetMetricData: its queries are asked again, expressions and all, for each attempt."""
        asked = self._asked(parsed, context)
        if asked is None:
            return
        client = self._client(http_response, context)
        series = {one["Id"]: _by_time(one) for one in parsed.get("MetricDataResults") or ()}
        for first in sorted(_training_jobs(asked)):
            for name in self._later(first):
                pages = client.get_paginator("get_metric_data").paginate(**_renamed(asked, first, name))
                for one in (result for page in pages for result in page["MetricDataResults"]):
                    series.setdefault(one["Id"], {}).update(_by_time(one))
        newest_first = asked.get("ScanBy", "TimestampDescending") == "TimestampDescending"
        for one in parsed.get("MetricDataResults") or ():
            points = sorted(series[one["Id"]].items(), reverse=newest_first)
            one["Timestamps"], one["Values"] = [at for at, _ in points], [value for _, value in points]

    def _asked(self, parsed: dict[str, Any], context: Mapping[str, Any]) -> dict[str, Any] | None:
        """None where there is nothing of ours to join."""
        if "Error" in parsed or context["client_region"] != self._region:
            return None
        return context.get(_KEPT)

    def _later(self, first: str) -> list[str]:
        """Training jobs of the attempts after the one that has the job's name."""
        names = [one.training_job_name for one in self._queued.attempts(first)]
        return [name for name in names if name != first]

    def _client(self, http_response: AWSResponse, context: Mapping[str, Any]) -> Any:  # noqa: ANN401  boto3's
        return self._clients.of("cloudwatch", Where.called(http_response.url, context))


def _keep(params: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
    if params.get("Namespace") == NAMESPACE and _training_job(params):
        context[_KEPT] = dict(params)


def _keep_queries(params: Mapping[str, Any], context: dict[str, Any], **_: object) -> None:
    """The later attempts come with the first page."""
    if _training_jobs(params) and not params.get("NextToken"):
        context[_KEPT] = dict(params)


def _training_job(asked: Mapping[str, Any]) -> str:
    """Empty where something else is asked for."""
    dimensions = asked.get("Dimensions") or ()
    names = [one.get("Value") for one in dimensions if one.get("Name") == DIMENSION]
    return str(names[0]) if len(dimensions) == 1 and names else ""


def _training_jobs(asked: Mapping[str, Any]) -> set[str]:
    return {_queried_job(one) for one in asked.get("MetricDataQueries") or ()} - {""}


def _queried_job(query: Mapping[str, Any]) -> str:
    metric = (query.get("MetricStat") or {}).get("Metric") or {}
    return _training_job(metric) if metric.get("Namespace") == NAMESPACE else ""


def _renamed(asked: Mapping[str, Any], first: str, name: str) -> dict[str, Any]:
    """The same queries of another training job."""
    queries = deepcopy(list(asked["MetricDataQueries"]))
    for query in queries:
        if _queried_job(query) == first:
            query["MetricStat"]["Metric"]["Dimensions"] = [{"Name": DIMENSION, "Value": name}]
    return {**asked, "MetricDataQueries": queries}


def _by_time(result: Mapping[str, Any]) -> dict[datetime, float]:
    return dict(zip(result["Timestamps"], result["Values"], strict=True))
