"""Metrics that real training processes print: published while they run, the last of each kept at the end."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from local.cloudwatch.cloudwatch_twin import CloudWatchTwin
from local.sagemaker.adapters import CloudWatchMetrics
from local.sagemaker.loads import Sample
from tests.integration.local.sagemaker_world import (
    ACCOUNT,
    LOG_GROUP,
    REGION,
    UNTIL_TRAINING_SECONDS,
    World,
    manual_clock,
    open_world,
    request,
    wait_for,
)

LOSS = {"Name": "loss", "Regex": "loss=([0-9.]+)"}
BROKEN = {"Name": "broken", "Regex": "loss=([0-9.]+"}
WAITING = "while :; do sleep 0.05; done"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path, manual_clock()) as world:
        yield world


def measured(name: str, script: str, *definitions: dict[str, str]) -> dict[str, Any]:
    algorithm = request(name, ["sh", "-c", script])["AlgorithmSpecification"]
    return {"AlgorithmSpecification": {**algorithm, "MetricDefinitions": list(definitions)}}


def published(world: World, name: str) -> list[tuple[datetime, float]]:
    dimension = ("TrainingJobName", name)
    return [(at, one.value) for at, one in world.metrics.put_at if one.dimension == dimension]


def test_values_are_published_while_the_job_runs_and_the_last_is_final_at_its_end(world: World) -> None:
    world.train("job", **measured("job", f"echo loss=3; echo loss=2.5; {WAITING}", LOSS, BROKEN))
    began = datetime.fromtimestamp(world.describe("job")["TrainingStartTime"], UTC)
    wait_for(lambda: len(published(world, "job")) == 2, "both values are published")
    (first, _), (second, _) = published(world, "job")
    assert [value for _, value in published(world, "job")] == [3.0, 2.5]
    assert began <= first <= second <= world.clock.now()
    assert {one.unit for _, one in world.metrics.put_at} == {"None"}
    seen = world.describe("job")
    assert "FinalMetricDataList" not in seen
    assert seen["AlgorithmSpecification"]["MetricDefinitions"] == [LOSS, BROKEN]

    world.stop("job")
    world.advance(2 * UNTIL_TRAINING_SECONDS)
    stopped = world.finished("job")
    assert stopped["SecondaryStatus"] == "Stopped"
    final = {"MetricName": "loss", "Value": 2.5, "Timestamp": second.timestamp()}
    assert stopped["FinalMetricDataList"] == [final]


def test_the_last_words_of_a_job_that_fails_are_in_its_final_metrics(world: World) -> None:
    world.train_to_end("job", ["true"], **measured("job", "echo loss=3; printf loss=1; exit 3", LOSS))
    failed = world.describe("job")
    assert failed["TrainingJobStatus"] == "Failed"
    assert [one["Value"] for one in failed["FinalMetricDataList"]] == [1.0]


def test_a_job_without_definitions_or_without_a_match_has_no_metrics(world: World) -> None:
    world.train_to_end("job", ["true"], **measured("job", "echo acc=3", LOSS))
    assert "FinalMetricDataList" not in world.describe("job")
    assert [one for _, one in world.metrics.put_at if one.dimension[0] == "TrainingJobName"] == []


def test_cloudwatch_has_a_value_by_training_job_and_a_load_by_host_each_with_its_unit() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    cloudwatch = CloudWatchTwin(account_id=ACCOUNT, region=REGION, now=lambda: noon)
    sink = CloudWatchMetrics(cloudwatch)
    emitted = ("TrainingJobName", "job")
    sink.put(Sample(metric="loss", dimension=emitted, value=2.5, unit="None"), at=noon)
    sink.put(Sample(metric="GPUUtilization", dimension=("Host", "job/algo-1"), value=190.0), at=noon)
    asked = {"Namespace": LOG_GROUP, "StartTime": noon, "EndTime": noon + timedelta(minutes=1), "Period": 60}

    def points(metric: str, name: str, value: str) -> list[dict[str, Any]]:
        dimensions = [{"Name": name, "Value": value}]
        params = {**asked, "MetricName": metric, "Dimensions": dimensions, "Statistics": ["Average"]}
        found: list[dict[str, Any]] = cloudwatch.call("GetMetricStatistics", params)["Datapoints"]
        return found

    assert points("loss", "TrainingJobName", "job") == [{"Timestamp": noon, "Average": 2.5, "Unit": "None"}]
    (load,) = points("GPUUtilization", "Host", "job/algo-1")
    assert (load["Average"], load["Unit"]) == (190.0, "Percent")
