"""Arrays on the command line: submitted, swept, listed, changed, run again, their results."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from trainmaster_client.hooks.array_results import ArrayResults, TaskResult
from trainmaster_client.jobs.array_views import task_view

from tests.integration.client.array_answers import array_document, no_job, task_document
from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import REQUEST, FakeApi, Scripted, problem, view

LINE = "sweep: pending, 0 of 4 completed, 4 waiting"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "job.json"
    path.write_text(json.dumps({**REQUEST, "HyperParameters": {"lr": "0.1", "seed": "0"}}))
    return str(path)


@pytest.fixture
def queue(api: FakeApi) -> FakeApi:
    """An API with the array ``sweep``, and no job of that name."""
    answer = {"array": array_document(), "warnings": [{"field": "Tags", "message": "no team"}]}
    api.script("POST", "/add-array", Scripted(status=201, document=answer))
    for method in ("GET", "PATCH", "DELETE"):
        api.script(method, "/jobs/sweep", no_job())
        api.script(method, "/arrays/sweep", Scripted(document=array_document()))
    return api


def sent(api: FakeApi) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(api.received[-1].body)
    return body


def test_submit_makes_an_array_of_a_request_and_a_table(
    queue: FakeApi, trainmaster: Trainmaster, file: str, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text("\ufefflr,seed\n0.1,1\n0.2,2\n\n")
    ran = trainmaster(
        "submit", file, "--array", "7-8%2", "--values", str(table), "--after", "aftercorr:prepare"
    )
    assert (ran.code, ran.out.splitlines()) == (0, [LINE, "Warning: Tags: no team"])
    body = sent(queue)
    assert (body["tasks"], body["at_most"]) == ("7-8", 2)
    assert body["values"] == {"lr": ["0.1", "0.2"], "seed": ["1", "2"]}
    assert body["request"]["Tags"] == [{"Key": "trainmaster:after", "Value": "aftercorr:prepare"}]
    assert queue.received[-1].headers["idempotency-key"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("lr\n", "table.csv: has no values"),
        ("lr,seed\n0.1\n", "table.csv:2: has 1 values for 2 names (task 0)"),
        ("lr,lr\n1,2\n", "table.csv:1: column 2 has no name, or another's"),
        ("lr,sed\n1,2\n", "values[0].sed: of task 0 is no hyperparameter of the request; did you mean seed?"),
    ],
)
def test_P10_a_table_that_does_not_fit_is_refused_before_anything_is_sent(
    table: str, message: str, api: FakeApi, trainmaster: Trainmaster, file: str, tmp_path: Path
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(table)
    ran = trainmaster("submit", file, "--values", str(path))
    assert ran.code == 2
    assert message in ran.err
    assert api.received == []


def test_P10_indices_that_are_none_are_refused_before_anything_is_sent(
    api: FakeApi, trainmaster: Trainmaster, file: str
) -> None:
    ran = trainmaster("submit", file, "--array", "0-3,3")
    assert (ran.code, api.received) == (2, [])
    assert "tasks: has index 3 twice; name each index once" in ran.err
    assert "is for arrays" in trainmaster("submit", file, "--stop-after-failures", "3").err


def test_a_dry_run_says_how_many_tasks_what_all_cost_and_when_the_last_ends(
    api: FakeApi, trainmaster: Trainmaster, file: str
) -> None:
    foreseen = {
        "valid": True,
        "violations": [],
        "warnings": [],
        "pool": "p5",
        "position": 2,
        "tasks": 64,
        "array": {"name": "sweep", "tasks": "0-63", "at_most": 8},
        "estimated_start": None,
        "estimate_note": "within the hour",
        "estimated_end": "2026-11-21T09:00:00Z",
        "estimated_cost_usd": 640,
    }
    api.script("POST", "/add-array", Scripted(document=foreseen))
    ran = trainmaster("submit", file, "--array", "0-63%8", "--dry-run", "--team", "vision")
    assert ran.code == 0
    assert api.received[-1].query == {"dry_run": ["true"], "team": ["vision"]}
    assert "64 tasks, at most 8 at once." in ran.out
    assert "Likely cost of all tasks in USD: 640." in ran.out
    assert "Its last task likely ends" in ran.out
    api.script("POST", "/add-array", Scripted(document={"valid": False, "violations": []}))
    assert trainmaster("submit", file, "--array", "0-63", "--dry-run").code == 1


def test_a_sweep_over_a_grid_is_one_array(queue: FakeApi, trainmaster: Trainmaster, file: str) -> None:
    ran = trainmaster(
        "sweep", file, "--grid", "lr=1e-4,3e-4", "--grid", "seed=1-3", "--at-most", "2", "--name", "sweep"
    )
    assert (ran.code, ran.out.splitlines()[0]) == (0, LINE)
    body = sent(queue)
    assert (body["tasks"], body["at_most"], body["request"]["TrainingJobName"]) == ("0-5", 2, "sweep")
    assert body["values"] == {"lr": ["1e-4"] * 3 + ["3e-4"] * 3, "seed": ["1", "2", "3"] * 2}


def test_a_sweep_of_random_draws_is_the_same_for_the_same_seed(
    queue: FakeApi, trainmaster: Trainmaster, file: str
) -> None:
    drawn = []
    for seed in ("0", "0", "1"):
        ran = trainmaster(
            "sweep", file, "--random", "40", "lr=log:1e-5..1e-2", "seed=int:0..9", "--seed", seed
        )
        assert ran.code == 0, ran.err
        drawn.append(sent(queue)["values"])
    assert len(drawn[0]["lr"]) == 40
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "One of --grid and --random is needed"),
        (("--grid", "lr=1", "seed=1"), "'seed=1' goes with --random"),
        (("--grid", "lrr=1,2"), "of task 0 is no hyperparameter of the request; did you mean lr?"),
        (("--random", "3", "lr=log:0..1"), "--random lr: 0 has no logarithm"),
    ],
)  # fmt: skip
def test_a_sweep_that_is_none_is_refused_before_anything_is_sent(
    arguments: tuple[str, ...], message: str, api: FakeApi, trainmaster: Trainmaster, file: str
) -> None:
    ran = trainmaster("sweep", file, *arguments)
    assert (ran.code, api.received) == (2, [])
    assert message in ran.err


def test_arrays_are_listed_with_their_counts_and_one_is_shown(
    queue: FakeApi, trainmaster: Trainmaster
) -> None:
    running = array_document(
        "big", state="running", at_most=8, tasks={"completed": 3, "failed": 1, "running": 8, "waiting": 52}
    )
    pages = [{"arrays": [running], "next_token": "t"}, {"arrays": [array_document()], "next_token": None}]
    queue.script("GET", "/arrays", *(Scripted(document=page) for page in pages))
    rows = [line.split() for line in trainmaster("arrays", "--team", "default").out.splitlines()]
    assert rows[0] == [
        "ARRAY",
        "TEAM",
        "POOL",
        "STATE",
        "DONE",
        "FAILED",
        "RUNNING",
        "WAITING",
        "HELD",
        "USD",
    ]
    assert rows[1] == ["big", "default", "p5", "running", "3/64", "1", "8", "of", "8", "52", "0", "0.00"]
    assert rows[2][0] == "sweep"
    shown = trainmaster("arrays", "sweep").out.splitlines()
    assert shown[:2] == [LINE, "  pool: p5"]
    assert "did you mean running?" in trainmaster("arrays", "--state", "runing").err


def test_what_is_asked_of_a_job_is_answered_for_an_array(queue: FakeApi, trainmaster: Trainmaster) -> None:
    assert trainmaster("show", "sweep").out.splitlines()[0] == LINE
    waiting = {"code": "dependency", "message": "waits for prepare"}
    document = array_document(
        waiting=waiting, after=[{"job": "prepare", "type": "afterok", "state": "running"}]
    )
    queue.script("GET", "/arrays/sweep", Scripted(document=document))
    why = trainmaster("why", "sweep").out
    assert "dependency: waits for prepare" in why
    assert "trainmaster tree sweep" in why
    queue.script("GET", "/jobs/prepare", Scripted(document=view("prepare", state="running")))
    tree = trainmaster("tree", "sweep").out.splitlines()
    assert tree[0] == "prepare  running"
    assert tree[2].startswith("sweep  pending, 0 of 4 completed, 4 waiting")


def test_a_child_of_an_array_draws_it_in_its_tree(queue: FakeApi, trainmaster: Trainmaster) -> None:
    child = view("evaluate", after=[{"job": "sweep", "type": "afterok", "state": "running"}], position=None)
    queue.script("GET", "/jobs/evaluate", Scripted(document=child))
    assert (
        trainmaster("tree", "evaluate").out.splitlines()[0] == "sweep  pending, 0 of 4 completed, 4 waiting"
    )


@pytest.mark.parametrize(
    ("arguments", "call", "body"),
    [
        (("hold", "sweep"), "PATCH", {"held": True}),
        (("release", "sweep"), "PATCH", {"held": False}),
        (("priority", "sweep", "9"), "PATCH", {"priority": 9}),
        (("throttle", "sweep", "4"), "PATCH", {"at_most": 4}),
        (("throttle", "sweep", "none"), "PATCH", {"at_most": None}),
        (("cancel", "sweep"), "DELETE", None),
        (("cancel", "sweep", "--tasks", "3-7"), "DELETE", None),
    ],
)
def test_a_change_of_an_array(
    arguments: tuple[str, ...], call: str, body: object, queue: FakeApi, trainmaster: Trainmaster
) -> None:
    ran = trainmaster(*arguments)
    assert (ran.code, ran.out.splitlines()) == (0, [LINE])
    last = queue.received[-1]
    assert (last.method, last.path) == (call, "/arrays/sweep")
    assert (json.loads(last.body) if last.body else None) == body
    assert last.query == ({"tasks": ["3-7"]} if "--tasks" in arguments else {})


def test_a_throttle_or_tasks_that_make_no_sense_are_refused(queue: FakeApi, trainmaster: Trainmaster) -> None:
    assert trainmaster("throttle", "sweep", "0").code == 2
    assert trainmaster("cancel", "a", "b", "--tasks", "3").code == 2
    assert queue.received == []


def test_cancel_of_all_that_match_takes_an_array_as_one(queue: FakeApi, trainmaster: Trainmaster) -> None:
    tasks = [view(f"sweep-{index}", array={"name": "sweep", "index": index}) for index in range(2)]
    page = {"jobs": [*tasks, view("alone")], "arrays": [array_document("held")], "next_token": None}
    queue.script("GET", "/jobs", Scripted(document=page))
    queue.script("DELETE", "/jobs/alone", Scripted(document=view("alone", state="stopped")))
    queue.script("DELETE", "/arrays/held", Scripted(document=array_document("held")))
    ran = trainmaster("cancel", "--team", "default", "--yes")
    assert ran.code == 0, ran.err
    deleted = [received.path for received in queue.received if received.method == "DELETE"]
    assert deleted == ["/jobs/alone", "/arrays/sweep", "/arrays/held"]


def test_cancel_mine_takes_an_array_that_has_no_jobs_yet(queue: FakeApi, trainmaster: Trainmaster) -> None:
    """An older stack shows all arrays of the team beside jobs of one's own, so that list is not used."""
    page = {"jobs": [], "arrays": [array_document("theirs"), array_document("own")], "next_token": None}
    queue.script("GET", "/jobs", Scripted(document=page))
    queue.script("GET", "/arrays", Scripted(document={"arrays": [array_document("own")], "next_token": None}))
    queue.script("DELETE", "/arrays/own", Scripted(document=array_document("own")))
    assert trainmaster("cancel", "--mine", "--yes").code == 0
    assert queue.received[-1].path == "/arrays/own"
    (listed,) = [received for received in queue.received if received.path == "/arrays"]
    assert listed.query["mine"] == ["true"]


def test_cancel_mine_leaves_arrays_that_an_older_stack_cannot_tell_apart(
    queue: FakeApi, trainmaster: Trainmaster
) -> None:
    page = {"jobs": [view("alone")], "arrays": [array_document("theirs")], "next_token": None}
    queue.script("GET", "/jobs", Scripted(document=page))
    queue.script("GET", "/arrays", problem(400, "Bad request", "there is no parameter mine"))
    queue.script("DELETE", "/jobs/alone", Scripted(document=view("alone", state="stopped")))
    assert trainmaster("cancel", "--mine", "--yes").code == 0
    deleted = [received.path for received in queue.received if received.method == "DELETE"]
    assert deleted == ["/jobs/alone"]


def test_arrays_of_ones_own_are_asked_for(queue: FakeApi, trainmaster: Trainmaster) -> None:
    queue.script("GET", "/arrays", Scripted(document={"arrays": [array_document()], "next_token": None}))
    assert trainmaster("arrays", "--mine").code == 0
    assert queue.received[-1].query["mine"] == ["true"]
    assert trainmaster("arrays").code == 0
    assert "mine" not in queue.received[-1].query


def test_cancel_of_a_state_takes_only_the_tasks_in_it(queue: FakeApi, trainmaster: Trainmaster) -> None:
    page = {"jobs": [view("sweep-4", array={"name": "sweep", "index": 4})], "next_token": None}
    queue.script("GET", "/jobs", Scripted(document=page))
    waiting = {"tasks": [task_document(index, "pending") for index in (4, 5, 9)], "next_token": None}
    queue.script("GET", "/arrays/sweep/tasks", Scripted(document=waiting))
    assert trainmaster("cancel", "--mine", "--state", "pending", "--yes").code == 0
    assert queue.received[-1].query == {"tasks": ["4-5,9"]}


@pytest.mark.parametrize("tasks", ["", " "])
def test_cancel_of_an_empty_list_of_tasks_reaches_no_stack(
    queue: FakeApi, trainmaster: Trainmaster, tasks: str
) -> None:
    """An older stack would cancel the whole array."""
    assert trainmaster("cancel", "sweep", "--tasks", tasks).code == 2
    assert [received for received in queue.received if received.method == "DELETE"] == []


def test_rerun_answers_with_the_new_array(queue: FakeApi, trainmaster: Trainmaster) -> None:
    again = {"array": array_document("sweep-again1"), "warnings": []}
    queue.script("POST", "/arrays/sweep/rerun", Scripted(status=201, document=again))
    assert trainmaster("rerun", "sweep").out.startswith("sweep-again1: pending")
    assert sent(queue) == {"tasks": "failed"}
    trainmaster("rerun", "sweep", "--tasks", "3-7", "--fresh", "--name", "other")
    assert sent(queue) == {"tasks": "3-7", "name": "other", "fresh": True}


def results(*_: object, **__: object) -> ArrayResults:
    """Two tasks that completed, one that failed."""
    documents = [
        task_document(0, values={"lr": "0.1", "opt": "=sum"}),
        task_document(1, values={"lr": "0.2", "opt": "adam"}),
        task_document(2, "failed", values={"lr": "0.3"}, reason={"code": "failed", "message": "boom"}),
    ]
    losses: tuple[dict[str, float], ...] = ({"loss": 0.5}, {"loss": 0.25}, {})
    rows = [
        TaskResult(task=task_view(document), metrics=metrics)
        for document, metrics in zip(documents, losses, strict=True)
    ]
    return ArrayResults(name="sweep", rows=tuple(rows))


def test_results_come_best_first_as_a_table_and_as_csv(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.cli.results_table.read_results", results)
    lines = trainmaster("results", "sweep", "--by", "loss").out.splitlines()
    assert lines[0].split() == ["INDEX", "lr", "opt", "loss", "STATE", "COST_USD", "WHY"]
    assert [line.split()[0] for line in lines[1:]] == ["1", "0", "2"]
    assert lines[3].split()[1:5] == ["0.3", "-", "-", "failed"]
    largest = trainmaster("results", "sweep", "--by", "loss", "--largest").out.splitlines()
    assert [line.split()[0] for line in largest[1:]] == ["0", "1", "2"]
    table = list(csv.DictReader(io.StringIO(trainmaster("results", "sweep", "--csv").out)))
    assert (table[0]["opt"], table[0]["loss"], table[2]["state"]) == ("'=sum", "0.5", "failed")
    assert json.loads(trainmaster("results", "sweep", "--json").out)["tasks"][1]["loss"] == 0.25


def test_results_by_a_metric_that_there_is_not(
    trainmaster: Trainmaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainmaster_client.cli.results_table.read_results", results)
    ran = trainmaster("results", "sweep", "--by", "accuracy")
    assert (ran.code, "Use loss." in ran.err) == (2, True)


def test_a_stack_without_arrays_says_so(api: FakeApi, trainmaster: Trainmaster) -> None:
    api.script("GET", "/jobs", Scripted(document={"jobs": []}))
    ran = trainmaster("arrays")
    assert ran.code == 3
    assert "/arrays" in ran.err
