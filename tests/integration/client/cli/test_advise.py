"""``trainmaster advise`` against a fake API, and once against the twin's."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from trainmaster_client.advice.spot_scores import PlacementScore
from trainmaster_client.report import Report

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem, view

REQUEST = {
    "TrainingJobName": "job1",
    "ResourceConfig": {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 1, "VolumeSizeInGB": 50},
    "CheckpointConfig": {"S3Uri": "s3://bucket/job1"},
}
POOLS = {"pools": [{"name": "gpu", "capacity": {"ml.g5.12xlarge": 2}, "spot_capacity": {"ml.g5.xlarge": 8}}]}
ANSWER: dict[str, Any] = {
    "valid": True,
    "violations": [],
    "pool": "gpu",
    "position": 1,
    "estimated_start": {"p50": "2020-11-21T02:00:00Z", "p90": "2020-11-21T03:00:00Z"},
    "would_preempt": [],
    "usd_per_hour": 7.09,
    "estimated_cost_usd": 14.18,
    "spot_record": [],
}
SPOT = ANSWER | {
    "estimated_start": {"p50": "2020-11-21T01:00:00Z", "p90": "2020-11-21T01:30:00Z"},
    "would_preempt": ["low", None],
    "usd_per_hour": 5.632,
    "estimated_cost_usd": 11.27,
    "spot_record": [{"instance_type": "ml.g5.xlarge", "expected_interruptions": 1.25}],
}
REFUSED = ANSWER | {
    "valid": False,
    "violations": [
        {"field": "ResourceConfig", "message": "asks for 9", "hint": "ask for 8", "rule": "never-fits"}
    ],
}


class NoScores:
    """Of a caller who may not ask EC2."""

    def __init__(self, _session: object) -> None:
        pass

    def score(self, _shape: object, _subnets: object) -> PlacementScore:
        return PlacementScore(score=None, where="", unknown="UnauthorizedOperation")


@pytest.fixture(autouse=True)
def no_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trainmaster_client.cli.advise.SpotScores", NoScores)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(REQUEST))
    return str(path)


def script(api: FakeApi, *answers: Any) -> None:
    api.script("GET", "/pools", Scripted(document=POOLS))
    found = [one if isinstance(one, Scripted) else Scripted(document=one) for one in answers]
    api.script("POST", "/add-job", *found)


def tried(api: FakeApi) -> list[tuple[str, list[dict[str, str]]]]:
    """Name and tags of each dry run."""
    posts = [one for one in api.received if one.method == "POST"]
    assert all(one.query == {"dry_run": ["true"]} for one in posts)
    bodies = [json.loads(one.body) for one in posts]
    return [(body["TrainingJobName"], body.get("Tags", [])) for body in bodies]


def shapes(value: str) -> list[dict[str, str]]:
    return [{"Key": "trainmaster:alternatives", "Value": value}]


def test_each_shape_is_tried_the_best_is_named_and_its_tag_is_tried_too(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    script(api, ANSWER, SPOT, SPOT)
    ran = trainmaster("advise", file)
    assert (ran.code, ran.err) == (0, "")
    assert tried(api) == [
        ("job1-advised", []),
        ("job1-advised", shapes("ml.g5.xlarge=4:spot")),
        ("job1-advised", shapes("ml.g5.xlarge=4:spot ml.g5.12xlarge=1")),
    ]
    assert ran.out.splitlines() == [
        "1. ml.g5.xlarge=4:spot (proposed: the same accelerators)",
        (
            "   5.63 USD an hour at most, about 7.39 for the job"
            " (50% of the price assumed, interruptions included)"
        ),
        "   Likely start: any moment now",
        "   would preempt low, a job of another team",
        "   spot placement score: not known: UnauthorizedOperation",
        "   interruptions: 1.25 expected at the recent rate",
        "   4 hosts without EFA: each step waits for a slower network",
        "2. ml.g5.12xlarge=1 (as the request has it)",
        "   7.09 USD an hour, about 14.18 for the job",
        "   Likely start: any moment now",
        "   one host: nothing goes over a network",
        "Starts and costs are estimates; in another shape the same work may take another time.",
        "Costs assume the time such jobs of the team took recently in one of the shapes, else MaxRuntime.",
        "Recommended: ml.g5.xlarge=4:spot: it is likely to start first; it would stop 2 running.",
        "The first of these that fits is taken, with the tag (tried, it is valid):",
        "  trainmaster:alternatives=ml.g5.xlarge=4:spot ml.g5.12xlarge=1",
    ]


def test_shapes_of_the_command_line_are_compared_and_the_order_is_chosen(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    """What is asked for twice is tried once."""
    script(api, ANSWER, ANSWER | {"estimated_cost_usd": 5.0}, SPOT, ANSWER)
    ran = trainmaster(
        "advise", file, "--by", "cost", "--shape", "ml.g5.12xlarge=2", "--shape", "ml.g5.12xlarge=1", "--json"
    )
    found = json.loads(ran.out)
    assert [one["shape"] for one in found["shapes"]] == [
        "ml.g5.12xlarge=2",
        "ml.g5.xlarge=4:spot",
        "ml.g5.12xlarge=1",
    ]
    assert [one["source"] for one in found["shapes"]] == ["option", "proposed", "request"]
    assert found["recommended"] == {
        "shape": "ml.g5.12xlarge=2",
        "why": "it is likely to cost least; no running job is stopped for it",
    }
    assert found["tag"]["Value"] == "ml.g5.12xlarge=2 ml.g5.xlarge=4:spot ml.g5.12xlarge=1"
    assert found["shapes"][1]["placement_score"]["unknown"] == "UnauthorizedOperation"


def test_when_every_shape_is_refused_the_exit_code_says_so(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    script(api, REFUSED)
    ran = trainmaster("advise", file)
    assert ran.code == 1
    assert "     ResourceConfig: asks for 9 [never-fits]; ask for 8" in ran.out.splitlines()
    assert ran.out.splitlines()[-1] == "None of them is valid: the job would be refused."


def test_a_tag_that_is_refused_is_not_recommended(trainmaster: Trainmaster, api: FakeApi, file: str) -> None:
    script(api, ANSWER, SPOT, REFUSED)
    assert "Together in one tag they are refused:" in trainmaster("advise", file).out
    script(api, ANSWER, SPOT, REFUSED)
    assert json.loads(trainmaster("advise", file, "--json").out)["tag"] is None


def test_a_shape_that_makes_the_request_invalid_is_told_beside_the_others(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    error = {"field": "Tags[0].Value", "message": "names no subnet", "hint": "name one"}
    script(api, ANSWER, problem(400, "Not valid", "one mistake", error), ANSWER)
    ran = trainmaster("advise", file)
    assert ran.code == 0
    assert "     Tags[0].Value: names no subnet; name one" in ran.out.splitlines()


def test_a_request_that_is_invalid_in_every_shape_is_an_error(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    script(api, problem(400, "Not valid", "RoleArn is required"))
    ran = trainmaster("advise", file)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "trainmaster: Not valid (400): RoleArn is required\n"


@pytest.mark.parametrize(
    ("changes", "arguments", "said"),
    [
        pytest.param(
            {}, ["--shape", "ml.g5.xlarge"], "--shape: 'ml.g5.xlarge' is not a list of shapes", id="shape"
        ),
        pytest.param(
            {"Tags": shapes("four GPUs")}, [], "the tag trainmaster:alternatives: 'four GPUs'", id="the tag"
        ),
        pytest.param(
            {"ResourceConfig": {"InstanceGroups": []}},
            ["--shape", "ml.g5.xlarge=4"],
            "The request has no single shape to compare others with.",
            id="groups cannot be compared",
        ),
    ],
)
def test_wrong_usage_is_exit_code_2(
    trainmaster: Trainmaster,
    api: FakeApi,
    tmp_path: Path,
    changes: dict[str, Any],
    arguments: list[str],
    said: str,
) -> None:
    script(api, ANSWER)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(REQUEST | changes))
    ran = trainmaster("advise", str(path), *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_request_with_groups_is_tried_as_it_is(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path
) -> None:
    script(api, ANSWER)
    path = tmp_path / "job.json"
    path.write_text(json.dumps(REQUEST | {"ResourceConfig": {"InstanceGroups": []}}))
    ran = trainmaster("advise", str(path))
    assert ran.code == 0
    assert ran.out.splitlines()[0] == "1. as requested (as the request has it)"
    assert "trainmaster:alternatives" not in ran.out


def test_an_answer_that_is_none_of_the_api_s_is_told_without_a_traceback(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    script(api, ANSWER | {"estimated_start": {"soon": True}})
    ran = trainmaster("advise", file)
    assert (ran.code, ran.out) == (1, "")
    assert "KeyError: 'p50'" in ran.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_shape_being_tried_is_told_as_the_file_writes_it(
    trainmaster: Trainmaster, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Square brackets are markup to what paints it."""
    script(api, ANSWER)
    resources = {"InstanceType": "[/ml]", "InstanceCount": 1, "VolumeSizeInGB": 50}
    path = tmp_path / "job.json"
    path.write_text(json.dumps(REQUEST | {"ResourceConfig": resources}))
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    assert trainmaster("advise", str(path)).code == 0
    assert "Trying [/ml]=1" in terminal.getvalue()


def test_an_admin_asks_for_a_team(trainmaster: Trainmaster, api: FakeApi, file: str) -> None:
    script(api, ANSWER, SPOT, SPOT)
    assert trainmaster("advise", file, "--team", "vision").code == 0
    posts = [one.query for one in api.received if one.method == "POST"]
    assert posts == [{"dry_run": ["true"], "team": ["vision"]}] * 3


def test_a_dry_run_is_for_a_team_and_a_submission_is_not(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    script(api, ANSWER)
    assert trainmaster("submit", file, "--dry-run", "--team", "vision").code == 0
    ran = trainmaster("submit", file, "--team", "vision")
    assert (ran.code, "--team is for dry runs" in ran.err) == (2, True)
    assert [one.query for one in api.received] == [{"dry_run": ["true"], "team": ["vision"]}]


ELASTIC_REQUEST = REQUEST | {
    "ResourceConfig": {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 2, "VolumeSizeInGB": 50},
    "Tags": [{"Key": "trainmaster:elastic", "Value": "1-2"}],
}
WIDE = {
    "width": 2,
    "estimated_start": {"p50": "2020-11-21T05:00:00Z", "p90": "2020-11-21T06:00:00Z"},
    "estimated_end": {"p50": "2020-11-21T07:00:00Z", "p90": "2020-11-21T08:00:00Z"},
    "training_hours": 2.0,
    "max_runtime_s": 86400,
    "usd_per_hour": 14.18,
    "estimated_cost_usd": 28.36,
}
NARROW = WIDE | {
    "width": 1,
    "estimated_start": {"p50": "2020-11-21T02:00:00Z", "p90": "2020-11-21T03:00:00Z"},
    "estimated_end": {"p50": "2020-11-21T05:36:00Z", "p90": "2020-11-21T06:36:00Z"},
    "training_hours": 3.6,
    "usd_per_hour": 7.09,
    "estimated_cost_usd": 25.52,
}


@pytest.fixture
def elastic_file(tmp_path: Path) -> str:
    path = tmp_path / "elastic.json"
    path.write_text(json.dumps(ELASTIC_REQUEST))
    return str(path)


def test_the_widths_of_an_elastic_job_are_compared_by_one_dry_run(
    trainmaster: Trainmaster, api: FakeApi, elastic_file: str
) -> None:
    api.script("GET", "/pools", Scripted(document={"pools": []}))
    api.script(
        "POST", "/add-job", Scripted(document=ANSWER | {"would_preempt": ["low"], "widths": [WIDE, NARROW]})
    )
    ran = trainmaster("advise", elastic_file)
    assert (ran.code, ran.err) == (0, "")
    assert tried(api) == [("job1-advised", ELASTIC_REQUEST["Tags"])]
    told = ran.out.splitlines()
    assert told[0] == "1. ml.g5.12xlarge=1 (from the request's tag)"
    assert "7.09 USD an hour, about 25.52 for the job" in told[1]
    assert "after 3.6 h of training" in told[3]
    assert told[4] == "   would preempt low"
    assert "14.18 USD an hour, about 28.36 for the job" in ran.out
    assert "trainmaster:alternatives" not in ran.out


def test_where_the_api_names_no_widths_each_is_tried(
    trainmaster: Trainmaster, api: FakeApi, elastic_file: str
) -> None:
    api.script("GET", "/pools", Scripted(document={"pools": []}))
    api.script("POST", "/add-job", *[Scripted(document=ANSWER)] * 3)
    assert trainmaster("advise", elastic_file).code == 0
    assert [tags for _, tags in tried(api)] == [
        ELASTIC_REQUEST["Tags"],
        shapes("ml.g5.12xlarge=2"),
        shapes("ml.g5.12xlarge=1"),
    ]


def test_a_dry_run_says_what_each_width_of_an_elastic_job_takes(
    trainmaster: Trainmaster, api: FakeApi, elastic_file: str
) -> None:
    unknown = NARROW | {"estimated_start": None, "estimated_end": None, "training_hours": None}
    api.script("POST", "/add-job", Scripted(document=ANSWER | {"widths": [WIDE, unknown]}))
    told = trainmaster("submit", elastic_file, "--dry-run").out
    assert "At 2 instances: likely start: any moment now; likely end: " in told
    assert ", after 2 h of training; about 28.36 USD." in told
    assert "At 1 instances: likely start: unknown; about 25.52 USD." in told


# ---- work per dollar, measured


class SageMaker:
    """Describes training jobs by name; ``lost`` is one that it does not know any more."""

    def __init__(self, **jobs: dict[str, Any]) -> None:
        self.jobs = jobs

    def describe_training_job(self, **names: str) -> dict[str, Any]:
        if names["TrainingJobName"] == "lost":
            raise ClientError({"Error": {"Code": "ValidationException"}}, "DescribeTrainingJob")
        return self.jobs[names["TrainingJobName"]]


def trained(instance_type: str, count: int, speed: Any, *, spot: bool = False) -> dict[str, Any]:
    return {
        "ResourceConfig": {"InstanceType": instance_type, "InstanceCount": count},
        "EnableManagedSpotTraining": spot,
        "FinalMetricDataList": [{"MetricName": "train:tok_s", "Value": speed}],
    }


@pytest.fixture
def measured(api: FakeApi, monkeypatch: pytest.MonkeyPatch) -> SageMaker:
    found = SageMaker(
        wide=trained("ml.g5.12xlarge", 1, 7090.0),
        small=trained("ml.g5.xlarge", 4, 4000.0, spot=True),
        again=trained("ml.g5.xlarge", 4, 5000.0, spot=True),
        mute=trained("ml.g5.12xlarge", 1, 1.0) | {"FinalMetricDataList": []},
    )
    monkeypatch.setattr(boto3.Session, "client", lambda _session, _service: found)
    attempts = {"a": ["wide"], "b": ["small", "again"], "c": ["lost"], "d": [], "e": ["mute"]}
    for job, names in attempts.items():
        tried = [{"attempt": number, "training_job_name": name} for number, name in enumerate(names, 1)]
        api.script("GET", f"/jobs/{job}", Scripted(document=view(name=job, attempts=tried)))
    return found


def test_shapes_are_ordered_by_the_work_a_dollar_gets_as_earlier_runs_show_it(
    trainmaster: Trainmaster, api: FakeApi, file: str, measured: SageMaker
) -> None:
    script(api, ANSWER, SPOT, SPOT)
    ran = trainmaster("advise", file, "--by", "work", "--measured", "a", "--measured", "b")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.strip() for line in ran.out.splitlines()]
    assert lines[0].startswith("1. ml.g5.xlarge=4:spot")
    # 3,600 x 4,500 / (5.632 x 0.5) and 3,600 x 7,090 / 7.09
    spot = "train:tok_s 4,500, 5.75e+06 per USD at 50% of the price, 1.60x that of ml.g5.12xlarge=1"
    assert f"measured on 2 runs: {spot}" in lines
    assert "measured on 1 run: train:tok_s 7,090, 3.6e+06 per USD" in lines
    assert any("a dollar gets most work done in it, by the runs measured" in line for line in lines)


def test_speeds_are_in_the_json_and_shapes_without_one_say_null(
    trainmaster: Trainmaster, api: FakeApi, file: str, measured: SageMaker
) -> None:
    script(api, ANSWER, SPOT, SPOT)
    told = json.loads(trainmaster("advise", file, "--measured", "a", "--json").out)["shapes"]
    assert {shape["shape"]: shape["measured"] for shape in told} == {
        "ml.g5.12xlarge=1": {
            "metric": "train:tok_s",
            "per_second": 7090.0,
            "runs": 1,
            "per_usd": pytest.approx(3_600_000),
        },
        "ml.g5.xlarge=4:spot": None,
    }


def test_runs_that_tell_nothing_are_named_beside_those_that_do(
    trainmaster: Trainmaster, api: FakeApi, file: str, measured: SageMaker
) -> None:
    script(api, ANSWER, SPOT, SPOT)
    named = [word for job in "acde" for word in ("--measured", job)]
    ran = trainmaster("advise", file, *named)
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "trainmaster: not compared: lost: SageMaker does not describe it: ValidationException.",
        "trainmaster: not compared: d has not started yet.",
        "trainmaster: not compared: mute: SageMaker has no train:tok_s of it, nor any other metric.",
    ]


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf"), None, "fast"])
def test_a_speed_that_is_none_is_refused(
    trainmaster: Trainmaster, api: FakeApi, file: str, measured: SageMaker, speed: Any
) -> None:
    measured.jobs["wide"] = trained("ml.g5.12xlarge", 1, speed)
    ran = trainmaster("advise", file, "--measured", "a")
    assert (ran.code, ran.out) == (2, "")
    assert "--measured tells no speed: wide: its train:tok_s is" in ran.err


def test_another_metric_is_offered_where_the_one_asked_for_is_missing(
    trainmaster: Trainmaster, api: FakeApi, file: str, measured: SageMaker
) -> None:
    ran = trainmaster("advise", file, "--measured", "a", "--metric", "images/s")
    assert ran.code == 2
    assert "SageMaker has no images/s of it, but train:tok_s" in ran.err


def kept(instance_type: str, instances: int, per_second: Any, *, spot: bool = False) -> dict[str, Any]:
    capacity_type = "spot" if spot else "on-demand"
    shape = {"instance_type": instance_type, "capacity_type": capacity_type, "instances": instances}
    return {**shape, "unit": "tokens", "per_second": per_second, "runs": 3}


def test_runs_that_the_stack_has_measured_are_compared_without_being_named(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    speeds = [kept("ml.g5.12xlarge", 1, 7090.0), kept("ml.g5.xlarge", 4, 4500.0, spot=True)]
    script(api, ANSWER | {"measured_speeds": speeds}, ANSWER, SPOT, SPOT)
    ran = trainmaster("advise", file, "--by", "work")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.strip() for line in ran.out.splitlines()]
    assert lines[0].startswith("1. ml.g5.xlarge=4:spot")
    work = "tokens a second 4,500, 5.75e+06 per USD at 50% of the price, 1.60x that of ml.g5.12xlarge=1"
    assert f"measured on 3 runs: {work}" in lines
    (first, _), *others = tried(api)
    assert not first.endswith("-advised"), "the program is known by the job's own name"
    assert all(name == f"{first}-advised" for name, _ in others)


@pytest.mark.parametrize("answer", [{}, {"measured_speeds": []}], ids=["an older stack", "nothing measured"])
def test_work_of_a_program_that_was_never_measured_is_refused_with_what_to_do(
    trainmaster: Trainmaster, api: FakeApi, file: str, answer: dict[str, Any]
) -> None:
    script(api, ANSWER | answer)
    ran = trainmaster("advise", file, "--by", "work")
    assert (ran.code, ran.out) == (2, "")
    assert "--measured JOB, several times" in ran.err
    assert "MetricDefinitions" in ran.err


def test_speeds_that_the_stack_could_not_read_are_no_program_without_runs(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    script(api, ANSWER | {"measured_speeds": None})
    ran = trainmaster("advise", file, "--by", "work")
    assert (ran.code, ran.out) == (3, "")
    assert "did not answer for the speeds of earlier runs; try again in a minute" in ran.err


def test_speeds_that_make_no_sense_are_an_error_that_names_them(
    trainmaster: Trainmaster, api: FakeApi, file: str
) -> None:
    script(api, ANSWER | {"measured_speeds": [kept("ml.g5.12xlarge", 1, "fast")]})
    ran = trainmaster("advise", file, "--by", "work")
    assert ran.code != 0
    assert "measured_speeds" in ran.err


def bench(folder: Path, name: str, tok_s: Any, row: str = "compiled", ranks: int = 1) -> str:
    """A report of the bench's modes, as it is written."""
    report = Report(name="benchmarks.training.bench")
    speed = {"tok_s": tok_s, "tok_s_gpu": tok_s / ranks if isinstance(tok_s, float) else tok_s}
    modes = [{"mode": row, **speed, "losses": [9.0, 8.0]}]
    report.facts = {"preset": "llama-1b", "flops_per_token": 6e9, "ranks": ranks, "modes": modes}
    report.write(folder / name)
    return str(folder / name)


def test_reports_of_the_bench_are_compared_by_work_per_dollar(
    trainmaster: Trainmaster, api: FakeApi, file: str, tmp_path: Path
) -> None:
    script(api, ANSWER, SPOT, SPOT)
    whole = f"ml.g5.12xlarge=1,{bench(tmp_path, 'whole.json', 7090.0, ranks=4)}"
    parts = f"ml.g5.xlarge=4:spot,{bench(tmp_path, 'parts.json', 4500.0, ranks=4)}"
    ran = trainmaster("advise", file, "--by", "work", "--bench", whole, "--bench", parts)
    assert (ran.code, ran.err) == (0, "")
    lines = [line.strip() for line in ran.out.splitlines()]
    assert lines[0].startswith("1. ml.g5.xlarge=4:spot")
    work = "tokens a second of bench's compiled 4,500, 5.75e+06 per USD at 50% of the price, 1.60x that of"
    assert f"measured on 1 run: {work} ml.g5.12xlarge=1" in lines


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(["--bench", "ml.g5.xlarge=1"], "is not a shape and a file", id="no file"),
        pytest.param(["--bench", "ml.g5.xlarge,a.json"], "'ml.g5.xlarge'", id="no count"),
        pytest.param(["--bench", "ml.g5.xlarge=1 ml.g5.xlarge=2,a.json"], "not one shape", id="two shapes"),
        pytest.param(["--bench", "ml.g5.xlarge=1,missing.json"], "missing.json cannot be read", id="missing"),
        pytest.param(["--bench-row", "compiled"], "--bench-row needs a report", id="a row alone"),
        pytest.param(["--bench", "ml.g5.xlarge=1,a", "--measured", "b"], "Give one of them", id="both"),
    ],
)
def test_a_wrong_option_for_reports_is_answered_with_a_right_one(
    trainmaster: Trainmaster, api: FakeApi, file: str, options: list[str], words: str
) -> None:
    script(api, ANSWER)
    ran = trainmaster("advise", file, *options)
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert not [received for received in api.received if received.method == "POST"], "nothing was tried"


def test_a_report_with_a_wrong_value_names_the_field(
    trainmaster: Trainmaster, api: FakeApi, file: str, tmp_path: Path
) -> None:
    script(api, ANSWER)
    ran = trainmaster("advise", file, "--bench", f"ml.g5.xlarge=1,{bench(tmp_path, 'a.json', 'fast')}")
    assert ran.code == 2
    assert "facts.modes[0].tok_s is fast" in ran.err
    assert "It has to be a number above 0, e.g. 15324.5" in ran.err
