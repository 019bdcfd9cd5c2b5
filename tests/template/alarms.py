"""The operator's alarms."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.core.monitoring import metrics
from trainmaster.core.monitoring.metrics import NAMESPACE, STACK, Metric

from tests.template.functions import FUNCTIONS
from tests.template.stack import of_type, without


def _alarm(name: str, source: tuple[str, str, str, str], statistic: str, period: int) -> dict[str, Any]:
    namespace, metric, dimension, value = source
    return {
        "AlarmName": f"operator-prod-{name}",
        "Namespace": namespace,
        "MetricName": metric,
        "Dimensions": [{"Name": dimension, "Value": value}],
        "Statistic": statistic,
        "Period": period,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "TreatMissingData": "notBreaching",
        "AlarmActions": ["${MailTopic}"],
    }


def _own_alarm(name: str, metric: Metric, statistic: str, *, periods: int, threshold: int) -> dict[str, Any]:
    """On a metric of ours, of the whole stack."""
    assert not metric.dimensions or metric.also_whole, f"{metric.name} is not written without a dimension"
    alarm = _alarm(name, (NAMESPACE, metric.name, STACK, "prod"), statistic, 300)
    return {**alarm, "EvaluationPeriods": periods, "Threshold": threshold}


def _expected_alarms() -> Iterator[dict[str, Any]]:
    yield _own_alarm("oldest-wait", metrics.OLDEST_WAIT, "Maximum", periods=3, threshold=86400)
    first = _own_alarm("first-unseen", metrics.FIRST_UNSEEN, "Maximum", periods=1, threshold=300)
    yield {**first, "TreatMissingData": "breaching"}  # reconcile writes it each minute, whatever waits
    yield _own_alarm("unguarded-jobs", metrics.UNGUARDED, "Minimum", periods=12, threshold=1)
    yield _own_alarm("errands-pending", metrics.MESSAGES_PENDING, "Maximum", periods=3, threshold=1)
    yield _own_alarm("rows-set-aside", metrics.SET_ASIDE, "Maximum", periods=1, threshold=1)
    yield _own_alarm("server-errors", metrics.SERVER_ERRORS, "Sum", periods=1, threshold=5)
    yield _own_alarm("chains-ended", metrics.CHAINS_ENDED, "Sum", periods=1, threshold=1)
    paused = _own_alarm("starts-paused", metrics.STARTS_PAUSED, "Sum", periods=4, threshold=1)
    yield {**paused, "DatapointsToAlarm": 1}
    yield _own_alarm("jobs-failed", metrics.FAILURES, "Sum", periods=1, threshold=10)
    for logical_id, function in FUNCTIONS.items():
        name = function.folder.replace("_", "-")
        for metric in ("Errors", "Throttles"):
            source = ("AWS/Lambda", metric, "FunctionName", f"${{{logical_id}}}")
            yield _alarm(f"{name}-{metric.lower()}", source, "Sum", 300)
        if function.has_dead_letters:
            queue = f"{logical_id.removesuffix('Function').replace('Schedule', 'Doorbell')}DeadLetterQueue"
            depth = ("AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", f"${{{queue}.QueueName}}")
            name = name.replace("schedule", "doorbell")
            yield _alarm(f"{name}-dead-letters", depth, "Maximum", 60)


def wrong_alarms(stack: Mapping[str, Any]) -> Iterator[str]:
    """People hear of every error, throttle and dead letter; and `schedule` cannot touch these alarms."""
    expected = {one["AlarmName"]: one for one in _expected_alarms()}
    alarms = of_type(stack, "AWS::CloudWatch::Alarm").values()
    given = {str(one.get("AlarmName")): without(one, "AlarmDescription") for one in alarms}
    for name in sorted(expected.keys() | given.keys()):
        if expected.get(name) != given.get(name):
            yield f"{name}: {given.get(name)}"
    if any(name.startswith("trainmaster-") for name in given):
        yield "an operator's alarm under the prefix that schedule may delete"
