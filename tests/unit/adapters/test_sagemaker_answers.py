"""From DescribeTrainingJob to what the core knows of a training job."""

from datetime import UTC, datetime
from typing import Any

import pytest
from trainmaster.adapters.sagemaker_answers import observation_of
from trainmaster.core.durations.work_speeds import WorkSpeed

ANSWER: dict[str, Any] = {
    "TrainingJobName": "bert",
    "TrainingJobArn": "arn:x",
    "TrainingJobStatus": "Completed",
    "SecondaryStatus": "Completed",
    "LastModifiedTime": datetime(2026, 11, 2, tzinfo=UTC),
}


@pytest.mark.parametrize(
    ("metrics", "speed"),
    [
        pytest.param({}, None, id="an answer without metrics"),
        pytest.param({"FinalMetricDataList": None}, None, id="an empty member"),
        pytest.param({"FinalMetricDataList": [{"MetricName": "loss", "Value": 2.0}]}, None, id="others"),
        pytest.param({"FinalMetricDataList": [{"Value": 2.0}, {"MetricName": "tok_s"}]}, None, id="halves"),
        pytest.param(
            {"FinalMetricDataList": [{"MetricName": "train:tok_s", "Value": 7090.5}]},
            WorkSpeed(unit="tokens", per_1000_s=7_090_500),
            id="tokens",
        ),
    ],
)
def test_the_last_metrics_tell_how_fast_it_trained(metrics: dict[str, Any], speed: WorkSpeed | None) -> None:
    assert observation_of(ANSWER | metrics).speed == speed
