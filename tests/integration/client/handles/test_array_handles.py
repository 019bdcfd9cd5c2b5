"""Handles on arrays: submit, wait, results, changes of all tasks or some of them."""

import json
from typing import Any

import boto3
import pytest
import trainmaster_client
from trainmaster_client.api import ApiClient
from trainmaster_client.errors import InvalidArgumentError, NotFoundError
from trainmaster_client.handles import JobArray, submit
from trainmaster_client.handles.array_handles import picture

from tests.integration.client.array_answers import array_document, task_document
from tests.integration.client.fake_api import ACCESS_KEY, REGION, REQUEST, SECRET_KEY, FakeApi, Scripted, view

SESSION = boto3.Session(aws_access_key_id=ACCESS_KEY, aws_secret_access_key=SECRET_KEY, region_name=REGION)


class SageMaker:
    """Describes training jobs by their names, with final metrics."""

    def __init__(self, **losses: float) -> None:
        self.losses = {name.replace("_", "-"): loss for name, loss in losses.items()}
        self.asked: list[str] = []

    def describe_training_job(self, *, TrainingJobName: str) -> dict[str, Any]:  # noqa: N803  boto3's
        self.asked.append(TrainingJobName)
        loss = self.losses.get(TrainingJobName)
        return {} if loss is None else {"FinalMetricDataList": [{"MetricName": "loss", "Value": loss}]}


def handle(api: FakeApi, sagemaker: SageMaker | None = None, **fields: Any) -> JobArray:
    return JobArray(
        ApiClient(api.url, SESSION),
        array_document(**fields),
        make_client=lambda _service: sagemaker,
        sleep=lambda _seconds: None,
    )


def test_a_request_is_sent_with_its_values_and_a_key(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = {"field": "Tags", "message": "no team", "hint": "", "rule": "audit"}
    document = {"array": array_document("job1"), "warnings": [warning]}
    api.script("POST", "/add-array", Scripted(status=201, document=document))
    request = {**REQUEST, "HyperParameters": {"lr": "0.1"}}
    array = trainmaster_client.submit_array(
        request, values={"lr": [0.1, 0.2]}, at_most=1, api_url=api.url, boto_session=SESSION
    )
    assert json.loads(api.received[0].body) == {
        "request": request,
        "tasks": "0-1",
        "at_most": 1,
        "values": {"lr": ["0.1", "0.2"]},
    }
    assert api.received[0].headers["idempotency-key"]
    assert repr(array) == "job1: pending, 0 of 4 completed, 4 waiting"
    assert "Warning: Tags: no team" in capsys.readouterr().out


def test_what_does_not_belong_together_is_refused_before_anything_is_sent(api: FakeApi) -> None:
    tagged = {**REQUEST, "Tags": [{"Key": "trainmaster:array", "Value": "0-3"}]}
    with pytest.raises(InvalidArgumentError, match="Use submit_array"):
        submit(tagged, api_url=api.url, boto_session=SESSION)
    with pytest.raises(InvalidArgumentError, match="'atmost' is not an option"):
        trainmaster_client.submit_array(REQUEST, tasks="0-3", atmost=3, api_url=api.url)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgumentError, match="TrainingJobName"):
        trainmaster_client.submit_array(REQUEST, tasks="0-3", job_name="x", api_url=api.url)
    assert api.received == []


def test_a_wait_prints_a_line_a_change_and_returns_the_end(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    running = array_document(state="running", tasks={"running": 1, "completed": 3})
    end = array_document(state="failed", tasks={"failed": 1, "completed": 3}, failed="2")
    api.script("GET", "/arrays/sweep", *(Scripted(document=seen) for seen in (running, running, end)))
    array = handle(api)
    assert array.wait().failure == "1 of 4 tasks failed: 2"
    assert array.state == "failed"
    assert capsys.readouterr().out.splitlines() == [
        "sweep: running, 3 of 4 completed, 1 running",
        "sweep: failed, 3 of 4 completed, 1 failed - 1 of 4 tasks failed: 2",
    ]


@pytest.mark.parametrize(
    ("act", "call", "query", "body"),
    [
        (lambda array: array.cancel(), "DELETE /arrays/sweep", {}, None),
        (lambda array: array.cancel("3-7"), "DELETE /arrays/sweep", {"tasks": ["3-7"]}, None),
        (lambda array: array.hold(), "PATCH /arrays/sweep", {}, {"held": True}),
        (lambda array: array.release(), "PATCH /arrays/sweep", {}, {"held": False}),
        (lambda array: array.priority(9), "PATCH /arrays/sweep", {}, {"priority": 9}),
        (lambda array: array.throttle(None), "PATCH /arrays/sweep", {}, {"at_most": None}),
    ],
)
def test_a_change_is_made_and_the_view_follows(
    act: Any, call: str, query: dict[str, Any], body: object, api: FakeApi
) -> None:
    method, _, path = call.partition(" ")
    changed = array_document(state="held", tasks={"held": 4})
    api.script(method, path, Scripted(status=202 if method == "DELETE" else 200, document=changed))
    assert act(handle(api)).state == "held"
    (received,) = api.received
    assert (f"{received.method} {received.path}", received.query) == (call, query)
    assert (json.loads(received.body) if received.body else None) == body


def test_a_rerun_is_a_new_array(api: FakeApi) -> None:
    again = {"array": array_document("sweep-again1", rerun_of="sweep"), "warnings": []}
    api.script("POST", "/arrays/sweep/rerun", Scripted(status=201, document=again))
    assert handle(api).rerun().name == "sweep-again1"
    assert handle(api).rerun("3-7", name="other", fresh=True).view.rerun_of == "sweep"
    bodies = [json.loads(received.body) for received in api.received]
    assert bodies == [{"tasks": "failed"}, {"tasks": "3-7", "name": "other", "fresh": True}]


def test_results_have_values_metrics_of_all_attempts_and_costs(api: FakeApi) -> None:
    first = [task_document(0, values={"lr": "0.1"}), task_document(1, attempt=1, values={"lr": "0.2"})]
    rest = [
        task_document(2, "failed", values={"lr": "0.3"}, cost_usd=None),
        task_document(3, "pending", values={"lr": "0.4"}, attempt=None, started_at=None, ended_at=None),
    ]
    pages = [{"tasks": first, "next_token": "2"}, {"tasks": rest, "next_token": None}]
    api.script("GET", "/arrays/sweep/tasks", *(Scripted(document=page) for page in pages))
    attempts = [
        {"attempt": number, "training_job_name": name, "status": ""}
        for number, name in enumerate(("sweep-1", "sweep-1-r1"))
    ]
    api.script("GET", "/jobs/sweep-1", Scripted(document=view("sweep-1", attempts=attempts)))
    sagemaker = SageMaker(sweep_0=0.5, sweep_1=0.9, sweep_1_r1=0.25, sweep_2=0.1)
    results = handle(api, sagemaker).results(by="loss")
    assert [(row.task.index, dict(row.metrics)) for row in results.rows] == [
        (1, {"loss": 0.25}),
        (0, {"loss": 0.5}),
        (2, {"loss": 0.1}),
        (3, {}),
    ]
    assert "sweep-3" not in sagemaker.asked
    assert [received.query.get("from") for received in api.received[:2]] == [None, ["2"]]
    frame = results.to_frame()
    assert list(frame.columns[:5]) == ["index", "lr", "loss", "state", "cost_usd"]
    assert frame["lr"].tolist() == [0.2, 0.1, 0.3, 0.4]
    assert frame["index"].tolist() == [1, 0, 2, 3]
    assert results.best_first("loss", largest=True).rows[0].task.index == 0


def test_columns_whose_names_collide_are_marked(api: FakeApi) -> None:
    tasks = {"tasks": [task_document(0, values={"state": "x", "loss": "mse"})]}
    api.script("GET", "/arrays/sweep/tasks", Scripted(document=tasks))
    (record,) = handle(api, SageMaker(sweep_0=0.5)).results().records()
    assert (record["state"], record["value.state"], record["loss"], record["metric.loss"]) == (
        "completed",
        "x",
        "mse",
        0.5,
    )


def test_a_task_is_a_job_of_its_own(api: FakeApi) -> None:
    api.script("GET", "/jobs/sweep-2", Scripted(document=view("sweep-2")))
    assert handle(api).task(2).name == "sweep-2"
    with pytest.raises(NotFoundError):
        handle(api).task(9)
    with pytest.raises(InvalidArgumentError):
        handle(api).task(-1)


def test_a_notebook_shows_a_bar_and_no_markup_of_others(api: FakeApi) -> None:
    html = picture(handle(api, state="failed", tasks={"failed": 1, "completed": 3}, name="<b>").view)
    assert '<progress value="4" max="4">' in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
