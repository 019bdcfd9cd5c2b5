"""The stack on a clock that stands still: every wait is moved by hand, so each run is the same."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.integration.local.running_twin import POLICY, RunningTwin, running_twin

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTwin]:
    folder = tmp_path_factory.mktemp("twin")
    with running_twin(folder, policy=POLICY, manual=True, speed=1.0) as twin:
        yield twin


def submit(twin: RunningTwin, name: str) -> None:
    ready = twin.ready
    body = {
        "TrainingJobName": name,
        "RoleArn": ready.role_arn,
        "AlgorithmSpecification": {
            "TrainingInputMode": "File",
            "TrainingImage": f"{ready.account_id}.dkr.ecr.{ready.region}.amazonaws.com/any:1",
            "ContainerEntrypoint": ["true"],
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{ready.bucket}/out"},
        "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    }
    answer = twin.api("POST", "/add-job", body)
    assert answer.status == 201, answer.body


def job(twin: RunningTwin, name: str) -> Any:
    return twin.api("GET", f"/jobs/{name}").json


def test_nothing_moves_until_the_clock_does_and_then_everything_due(twin: RunningTwin) -> None:
    now = datetime.fromisoformat(twin.advance(0))
    submit(twin, "still")
    twin.advance(0)
    assert job(twin, "still")["state"] == "running"
    assert job(twin, "still")["submitted_at"] == now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert job(twin, "still")["ended_at"] is None
    end = datetime.fromisoformat(twin.advance(600))
    assert end - now == timedelta(minutes=10)
    seen = job(twin, "still")
    assert seen["state"] == "completed"
    assert now < datetime.fromisoformat(seen["ended_at"]) < end


def test_lost_events_are_made_up_for_by_reconcile(twin: RunningTwin) -> None:
    twin.control("POST", "/events", {"drop": 1})
    submit(twin, "unheard")
    twin.advance(600)
    assert job(twin, "unheard")["state"] == "completed"
    twin.control("POST", "/events", {})


def test_doubled_and_reordered_events_change_nothing(twin: RunningTwin) -> None:
    twin.control("POST", "/events", {"duplicate": 0.7, "reorder": 0.5, "seed": 3})
    for number in range(3):
        submit(twin, f"noise-{number}")
    twin.advance(900)
    for number in range(3):
        seen = job(twin, f"noise-{number}")
        assert (seen["state"], seen["attempt"]) == ("completed", 0)
    twin.control("POST", "/events", {})
    pools = twin.api("GET", "/pools").json["pools"]
    assert pools[0]["used"]["on-demand"].get("ml.m5.large", 0) == 0


def test_reconcile_runs_once_each_minute_of_the_clock(twin: RunningTwin) -> None:
    def runs() -> int:
        lines = [line for line in twin.journal() if str(line.get("principal")).endswith("/reconcile")]
        return len({line["clock"] for line in lines})

    before = runs()
    twin.advance(180)
    assert runs() == before + 3
