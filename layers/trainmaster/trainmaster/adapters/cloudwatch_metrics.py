"""MetricReader over CloudWatch."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from trainmaster.adapters.cloudwatch_alarms import called
from trainmaster.core.monitoring.alarms import METRIC, NAMESPACE

PERIOD = timedelta(minutes=5)
"""Of a count of data points; for half an hour of all hosts of a call that is one page of the answer."""


class CloudWatchMetrics:
    def __init__(self, client: Any) -> None:
        self._client = client

    def have_data(self, hosts: Sequence[str], *, since: datetime, until: datetime) -> Mapping[str, bool]:
        """Ask for the number of data points, in one call; what is cut or went wrong counts as no answer."""
        queries = [_query(f"m{number}", host) for number, host in enumerate(hosts)]
        answer = called(
            self._client.get_metric_data,
            {"MetricDataQueries": queries, "StartTime": since, "EndTime": until},
        )
        if answer.get("NextToken"):
            return {}
        return dict(_answered(answer, {f"m{number}": host for number, host in enumerate(hosts)}))


def _query(name: str, host: str) -> dict[str, Any]:
    metric = {
        "Namespace": NAMESPACE,
        "MetricName": METRIC,
        "Dimensions": [{"Name": "Host", "Value": host}],
    }
    period = int(PERIOD.total_seconds())
    return {"Id": name, "MetricStat": {"Metric": metric, "Period": period, "Stat": "SampleCount"}}


def _answered(answer: Mapping[str, Any], hosts: Mapping[str, str]) -> Iterator[tuple[str, bool]]:
    for result in answer["MetricDataResults"]:
        values = result.get("Values") or ()
        if values or result.get("StatusCode") == "Complete":
            yield hosts[result["Id"]], bool(values)
