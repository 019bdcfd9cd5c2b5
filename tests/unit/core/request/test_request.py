import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.jobs.instances import Capacity, CapacityType, Choice, Shape, lane_text
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.request.options import Alternative, OnOom, UserOptions
from trainmaster.core.request.request import attempt_name, attempt_request, is_ours, read_request
from trainmaster.core.request.strict_json import body_hash, canonical
from trainmaster.core.request.validation import check_request

from tests.bodies import body, resources, spot, tag_list, tags
from tests.builders import attempt as an_attempt
from tests.builders import changed

ENTRY = "01JABCDEFGHJKMNPQRSTVWXYZ0"
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")  # as the service model has it
names = st.from_regex(r"\A[a-zA-Z0-9](-{0,3}[a-zA-Z0-9]){0,40}\Z").map(lambda name: name[:63].rstrip("-"))

GROUPS = [
    {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"},
    {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 2, "InstanceGroupName": "b"},
    {"InstanceType": "ml.g5.xlarge", "InstanceCount": 4, "InstanceGroupName": "c"},
]
PREFERENCES = [
    {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1},
    {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 2},
]


def on_demand(instance_type: str) -> Capacity:
    return Capacity(instance_type, CapacityType.ON_DEMAND)


def a_job(whole: dict[str, Any], *, attempt: int = 0) -> Job:
    ask = read_request(whole)
    spec = JobSpec(
        name=ask.name,
        entry_id=ENTRY,
        team="vision",
        pool="p5",
        submitted_by="arn:aws:iam::111122223333:role/vision-alice",
        submitted_at=datetime(2026, 1, 1, tzinfo=UTC),
        shapes=ask.shapes,
        choice=ask.choice,
        preemptible=ask.options.preemptible,
        checkpoint_uri=ask.checkpoint_uri,
        max_runtime=ask.max_runtime,
        max_wait=ask.max_wait,
        keep_alive=ask.keep_alive,
        body_hash=body_hash(whole),
    )
    return Job(spec=spec, state=JobState.PENDING, priority=ask.options.priority, score=0, attempt=attempt)


def started(
    whole: dict[str, Any], *, capacity_wait: timedelta = timedelta(minutes=30), **claimed: Any
) -> dict[str, Any]:
    """What CreateTrainingJob gets for the second attempt; ``claimed`` are fields of it."""
    job = a_job(whole, attempt=1)
    shape = claimed.pop("shape", None)
    if shape is None:
        shape = Shape(vector=job.spec.vector) if job.spec.choice is Choice.SAGEMAKER else job.spec.shapes[0]
    values: dict[str, Any] = {
        "shape": shape,
        "max_runtime": job.spec.max_runtime,
        "max_wait": job.spec.max_wait,
    }
    live = an_attempt("job1-r1-abcdef", number=1, **values | claimed)
    return attempt_request(whole, attempt=live, job=job, stack="tm", capacity_wait=capacity_wait)


@pytest.mark.parametrize(
    ("whole", "vector", "lane"),
    [
        pytest.param(body(), {"ml.p5.48xlarge": 1}, "ml.p5.48xlarge=1", id="one type"),
        pytest.param(
            resources(InstanceGroups=GROUPS),
            {"ml.g5.xlarge": 5, "ml.g5.2xlarge": 2},
            "ml.g5.2xlarge=2+ml.g5.xlarge=5",
            id="groups are counted by type",
        ),
        pytest.param(
            resources(InstancePreferences=PREFERENCES),
            {"ml.p5.48xlarge": 1, "ml.p4d.24xlarge": 2},
            "ml.p5.48xlarge=1|ml.p4d.24xlarge=2",
            id="every preference is held",
        ),
        pytest.param(
            resources(InstancePreferences=[{"InstanceType": "ml.p5.48xlarge"}], InstanceCount=3),
            {"ml.p5.48xlarge": 3},
            "ml.p5.48xlarge=3",
            id="one count for all preferences",
        ),
        pytest.param(
            body(
                Tags=tag_list({"trainmaster:alternatives": "ml.g5.xlarge=1 ml.g5.2xlarge=4:spot@subnet-0ab1"})
            ),
            {"ml.g5.xlarge": 1},
            "ml.g5.xlarge=1>ml.g5.2xlarge:spot=4@subnet-0ab1",
            id="alternatives replace the type of the request, the first of them is what it asks for",
        ),
    ],
)
def test_instances_and_lane(whole: dict[str, Any], vector: dict[str, int], lane: str) -> None:
    assert check_request(whole) == []
    ask = read_request(whole)
    assert ask.vector == {on_demand(name): count for name, count in vector.items()}
    assert lane_text(ask.shapes, ask.choice) == lane


def test_preferences_are_kept_in_their_order() -> None:
    ask = read_request(resources(InstancePreferences=PREFERENCES))
    assert ask.choice is Choice.SAGEMAKER
    assert ask.shapes == (
        Shape(vector={on_demand("ml.p5.48xlarge"): 1}),
        Shape(vector={on_demand("ml.p4d.24xlarge"): 2}),
    )


def test_managed_spot_is_counted_apart() -> None:
    ask = read_request(spot(run=60, wait=90))
    assert ask.vector == {Capacity("ml.p5.48xlarge", CapacityType.SPOT): 1}
    assert ask.max_wait == timedelta(seconds=90)
    assert lane_text(ask.shapes, ask.choice) == "ml.p5.48xlarge:spot=1"


def test_without_options_the_defaults_hold() -> None:
    assert read_request(body(Tags=None)).options == UserOptions(
        priority=0, team=None, preemptible=True, retries=None, on_oom=None, alternatives=()
    )


def test_options_come_from_tags() -> None:
    options = {
        "priority": "1000",
        "team": "vision",
        "trainmaster:preemptible": "false",
        "trainmaster:retries": "0",
        "trainmaster:on_oom": "halve_batch",
        "trainmaster:alternatives": "ml.g5.xlarge=1 ml.g5.2xlarge=4:spot@subnet-0ab1",
        "model_name": "resnet",
    }
    whole = body(Tags=tag_list(options))
    assert check_request(whole) == []
    assert read_request(whole).options == UserOptions(
        priority=1000,
        team="vision",
        preemptible=False,
        retries=0,
        on_oom=OnOom.HALVE_BATCH,
        alternatives=(
            Alternative(capacity=on_demand("ml.g5.xlarge"), count=1, subnet=None),
            Alternative(capacity=Capacity("ml.g5.2xlarge", CapacityType.SPOT), count=4, subnet="subnet-0ab1"),
        ),
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trainmaster:preemptible", "True"),
        ("trainmaster:preemptible", ""),
        ("trainmaster:retries", "6"),
        ("trainmaster:retries", "-1"),
        ("trainmaster:on_oom", "halve"),
        ("trainmaster:alternatives", ""),
        ("trainmaster:alternatives", "ml.g5.xlarge"),
        ("trainmaster:alternatives", "ml.g5.xlarge=0"),
        ("trainmaster:alternatives", "ml.g5.xlarge=1  ml.g5.2xlarge=1"),
        ("trainmaster:alternatives", "ml.g5.xlarge=1:Spot"),
        ("trainmaster:alternatives", "ml.g5.xlarge=1@vpc-1"),
        ("trainmaster:alternatives", "ml.g5.xlarge=1 ml.g5.xlarge=1"),
        ("team", ""),
        ("team", " vision"),
    ],
)
def test_an_option_that_says_nothing_is_refused_with_its_tag(key: str, value: str) -> None:
    (error,) = check_request(body(Tags=tag_list({"first": "tag", key: value})))
    assert error.field == "Tags[1].Value"
    assert key in error.message
    assert error.hint


def test_times_role_and_checkpoints_are_read() -> None:
    ask = read_request(body(CheckpointConfig={"S3Uri": "s3://vision-data/checkpoints"}))
    assert ask.max_runtime == timedelta(hours=1)
    assert ask.max_wait is None
    assert ask.checkpoint_uri == "s3://vision-data/checkpoints"
    assert ask.role_arn == "arn:aws:iam::111122223333:role/vision-training"
    assert ask.keep_alive is None
    assert read_request(body()).checkpoint_uri is None


def warm_key_of(whole: dict[str, Any]) -> str | None:
    return read_request(whole).shapes[0].warm_key


NETWORK = {"Subnets": ["subnet-2", "subnet-1"], "SecurityGroupIds": ["sg-1"]}


def test_jobs_share_a_warm_key_whatever_does_not_matter_to_the_machines() -> None:
    one = body(VpcConfig=NETWORK, EnableNetworkIsolation=False)
    other = body(
        TrainingJobName="other",
        VpcConfig=NETWORK | {"Subnets": ["subnet-1", "subnet-2"]},
        HyperParameters=None,
        Tags=None,
        StoppingCondition={"MaxRuntimeInSeconds": 1},
    )
    assert warm_key_of(one) == warm_key_of(other) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"RoleArn": "arn:aws:iam::111122223333:role/other"},
        {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30}},
        {"ResourceConfig": {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1, "VolumeSizeInGB": 30}},
        {"ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "VolumeSizeInGB": 31}},
        {"ResourceConfig": body()["ResourceConfig"] | {"VolumeKmsKeyId": "key"}},
        {"VpcConfig": NETWORK},
        {"EnableNetworkIsolation": True},
        {"EnableInterContainerTrafficEncryption": True},
        {"SessionChainingConfig": {"EnableSessionTagChaining": True}},
    ],
)
def test_a_warm_pool_of_other_machines_is_not_shared(change: dict[str, Any]) -> None:
    assert warm_key_of(body(**change)) != warm_key_of(body())


@pytest.mark.parametrize(
    "whole", [spot(), resources(InstanceGroups=GROUPS), resources(InstancePreferences=PREFERENCES)]
)
def test_where_sagemaker_keeps_no_warm_pool_there_is_no_key(whole: dict[str, Any]) -> None:
    assert warm_key_of(whole) is None


def test_the_order_of_keys_and_tags_does_not_change_what_a_body_is() -> None:
    one = body(Tags=tags(a="1", b="2"))
    other = json.loads(json.dumps(dict(reversed(one.items())))) | {"Tags": tags(b="2", a="1")}
    assert canonical(one) == canonical(other)
    assert body_hash(one) == body_hash(other)
    assert json.loads(canonical(one)) == one


@pytest.mark.parametrize(
    "change",
    [
        {"TrainingJobName": "job2"},
        {"Tags": tags(priority="4")},
        {"Tags": None},
        {"HyperParameters": {"epochs": "4"}},
        {"ContainerArguments": ["b", "a"]},
    ],
)
def test_any_other_change_makes_another_body(change: dict[str, Any]) -> None:
    assert body_hash(body(**change)) != body_hash(body(ContainerArguments=["a", "b"]))
    assert re.fullmatch("[0-9a-f]{64}", body_hash(body(**change)))


def test_the_first_attempt_has_the_users_name() -> None:
    assert attempt_name("job--1", ENTRY, 0) == "job--1"


def test_a_later_attempt_has_a_name_made_of_name_number_and_entry() -> None:
    assert attempt_name("job1", ENTRY, 2) == "job1-r2-a31d16"
    assert attempt_name("job1", ENTRY, 2) == attempt_name("job1", ENTRY, 2)
    assert attempt_name("job1", ENTRY[:-1] + "1", 2) != attempt_name("job1", ENTRY, 2)


def test_a_name_cut_at_a_hyphen_keeps_one_hyphen() -> None:
    assert attempt_name("a" * 50 + "-" * 12 + "b", ENTRY, 1).startswith("a" * 50 + "-r1-")


@given(names, st.integers(0, 10**6))
def test_every_attempts_name_is_one_that_sagemaker_takes(name: str, attempt: int) -> None:
    found = attempt_name(name, ENTRY, attempt)
    assert NAME.fullmatch(found)
    assert len(found) <= 63


@given(names, st.lists(st.integers(0, 10**6), unique=True, min_size=2))
def test_the_attempts_of_a_job_never_share_a_name(name: str, attempts: list[int]) -> None:
    assert len({attempt_name(name, ENTRY, attempt) for attempt in attempts}) == len(attempts)


def test_an_attempt_is_the_users_request_under_the_attempts_name_with_our_tags_last() -> None:
    whole = body(Tags=tags(priority="3", team="vision"), RetryStrategy={"MaximumRetryAttempts": 2})
    whole["ResourceConfig"]["InstanceType"] = "ml.m5.xlarge"
    before = json.dumps(whole)
    assert started(whole) == whole | {
        "TrainingJobName": "job1-r1-abcdef",
        "Tags": [
            {"Key": "priority", "Value": "3"},
            {"Key": "team", "Value": "vision"},
            {"Key": "trainmaster:stack", "Value": "tm"},
            {"Key": "trainmaster:job", "Value": ENTRY},
            {"Key": "trainmaster:attempt", "Value": "1"},
            {"Key": "trainmaster:spec", "Value": body_hash(whole)},
        ],
    }
    assert json.dumps(whole) == before


def test_a_user_without_tags_gets_ours_alone() -> None:
    assert len(started(body(Tags=None))["Tags"]) == 4


@pytest.mark.parametrize(
    ("instance_type", "capacity_wait", "expected"),
    [
        pytest.param("ml.p5.48xlarge", timedelta(minutes=45), 2700, id="GPUs wait as long as the pool says"),
        pytest.param("ml.trn1.2xlarge", timedelta(minutes=45), 2700, id="Trainium too"),
        pytest.param("ml.g5.xlarge", timedelta(minutes=1), 1800, id="not less than SageMaker takes"),
        pytest.param("ml.g5.xlarge", timedelta(days=99), 2_419_200, id="not more than SageMaker takes"),
        pytest.param("ml.m5.xlarge", timedelta(minutes=45), None, id="no effect on CPUs, so left out"),
    ],
)
def test_sagemaker_may_wait_for_accelerated_instances(
    instance_type: str, capacity_wait: timedelta, expected: int | None
) -> None:
    whole = resources(InstanceType=instance_type, InstanceCount=1)
    stopping = started(whole, capacity_wait=capacity_wait)["StoppingCondition"]
    assert stopping.get("MaxPendingTimeInSeconds") == expected
    assert stopping["MaxRuntimeInSeconds"] == 3600


def test_the_users_own_pending_time_stays() -> None:
    stopping = {"MaxRuntimeInSeconds": 60, "MaxPendingTimeInSeconds": 7200}
    assert started(body(StoppingCondition=stopping))["StoppingCondition"] == stopping


def test_what_a_user_wants_kept_alive_counts_for_nothing_but_the_attempts_own() -> None:
    whole = resources(InstanceType="ml.m5.xlarge", InstanceCount=1, KeepAlivePeriodInSeconds=600)
    bare = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1}
    assert read_request(whole).keep_alive == timedelta(minutes=10)
    assert started(whole)["ResourceConfig"] == bare
    kept = started(whole, keep_alive=timedelta(minutes=5))["ResourceConfig"]
    assert kept == bare | {"KeepAlivePeriodInSeconds": 300}


def test_an_attempt_is_ours_when_entry_attempt_and_request_agree() -> None:
    job = a_job(body(), attempt=1)
    found = {tag["Key"]: tag["Value"] for tag in started(body())["Tags"]}
    assert is_ours(found, job)
    assert not is_ours({}, job)
    assert not is_ours(found, replace(job, attempt=2))
    for key in ("trainmaster:job", "trainmaster:attempt", "trainmaster:spec"):
        assert not is_ours(found | {key: "other"}, job)


# ---- the attempt's own shape

SPOT_SHAPE = Shape(vector={Capacity("ml.g5.2xlarge", CapacityType.SPOT): 4}, subnet="subnet-9")
SDK = {"sagemaker_program": '"train.py"', "sagemaker_instance_type": '"ml.p5.48xlarge"'}


def test_an_alternative_rewrites_all_that_depends_on_the_shape() -> None:
    whole = body(VpcConfig=NETWORK, HyperParameters=SDK, CheckpointConfig={"S3Uri": "s3://b/c"})
    asked = started(whole, shape=SPOT_SHAPE, max_wait=timedelta(hours=7))
    changed = {name: part for name, part in asked.items() if part != whole.get(name)}
    del changed["Tags"]
    assert changed == {
        "TrainingJobName": "job1-r1-abcdef",
        "ResourceConfig": {"InstanceType": "ml.g5.2xlarge", "InstanceCount": 4, "VolumeSizeInGB": 30},
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {
            "MaxRuntimeInSeconds": 3600,
            "MaxWaitTimeInSeconds": 25200,
            "MaxPendingTimeInSeconds": 1800,
        },
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-9"]},
        "HyperParameters": {"sagemaker_program": '"train.py"', "sagemaker_instance_type": '"ml.g5.2xlarge"'},
    }


def test_a_spot_job_pinned_to_on_demand_loses_flag_and_wait() -> None:
    asked = started(
        spot(run=3600, wait=7200), shape=Shape(vector={on_demand("ml.m5.xlarge"): 1}), max_wait=None
    )
    assert asked["EnableManagedSpotTraining"] is False
    assert asked["StoppingCondition"] == {"MaxRuntimeInSeconds": 3600}


@pytest.mark.parametrize(
    ("whole", "asked_for"),
    [
        pytest.param(spot(), {}, id="one type"),
        pytest.param(
            resources(InstanceGroups=GROUPS, VolumeSizeInGB=9),
            {"InstanceGroups": GROUPS, "VolumeSizeInGB": 9},
            id="groups",
        ),
        pytest.param(
            resources(InstanceType="ml.p5.48xlarge", InstanceCount=1, VolumeSizeInGB=9)
            | {"Tags": tag_list({"trainmaster:alternatives": "ml.g5.xlarge=4:spot@subnet-0ab1"})},
            {"InstanceType": "ml.g5.xlarge", "InstanceCount": 4, "VolumeSizeInGB": 9},
            id="an alternative",
        ),
    ],
)
def test_a_job_that_left_spot_asks_for_the_same_instances_on_demand(
    whole: dict[str, Any], asked_for: dict[str, Any]
) -> None:
    whole = whole | {
        "EnableManagedSpotTraining": True,
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600, "MaxWaitTimeInSeconds": 7200},
    }
    moved = changed(a_job(whole, attempt=1), on_demand=True)
    (shape,) = moved.shapes
    asked = started(whole, shape=shape, max_wait=moved.max_wait)
    assert asked["EnableManagedSpotTraining"] is False
    assert "MaxWaitTimeInSeconds" not in asked["StoppingCondition"]
    assert asked["ResourceConfig"] == (asked_for or whole["ResourceConfig"])


def test_shapes_that_are_the_same_on_demand_are_one() -> None:
    both = tag_list({"trainmaster:alternatives": "ml.g5.xlarge=4:spot ml.g5.xlarge=4 ml.g5.xlarge=2:spot"})
    moved = changed(a_job(body(Tags=both)), on_demand=True)
    assert [shape.vector for shape in moved.shapes] == [
        {on_demand("ml.g5.xlarge"): 4},
        {on_demand("ml.g5.xlarge"): 2},
    ]
    assert [shape.warm_key is None for shape in moved.shapes] == [False, True]


def test_a_halved_batch_is_in_the_request_beside_what_was_submitted() -> None:
    whole = body(HyperParameters={"batch_size": "8", "lr": "0.1", **SDK})
    moved = changed(a_job(whole, attempt=1), rewritten={"batch_size": "4"})
    (shape,) = moved.spec.shapes
    live = an_attempt("job1-r1-abcdef", number=1, shape=shape)
    asked = attempt_request(whole, attempt=live, job=moved, stack="tm", capacity_wait=timedelta(minutes=30))
    assert asked["HyperParameters"] == {
        "batch_size": "4",
        "lr": "0.1",
        **SDK,
        "sagemaker_instance_type": '"ml.p5.48xlarge"',
    }


def test_a_spot_job_that_stays_one_keeps_its_wait() -> None:
    asked = started(spot(run=3600, wait=7200))
    assert asked["EnableManagedSpotTraining"] is True
    assert asked["StoppingCondition"]["MaxWaitTimeInSeconds"] == 7200


@pytest.mark.parametrize(
    "whole",
    [
        pytest.param(body(HyperParameters=None), id="no hyperparameters, no network"),
        pytest.param(body(HyperParameters={"epochs": "3"}), id="no note of the instance type"),
    ],
)
def test_nothing_is_added_that_was_not_there(whole: dict[str, Any]) -> None:
    asked = started(whole, shape=SPOT_SHAPE, max_wait=timedelta(hours=7))
    assert asked.get("HyperParameters") == whole.get("HyperParameters")
    assert "VpcConfig" not in asked
    assert "EnableManagedSpotTraining" not in started(whole)


def test_without_a_subnet_of_its_own_a_shape_runs_in_those_of_the_request() -> None:
    assert started(body(VpcConfig=NETWORK))["VpcConfig"] == NETWORK


def test_a_later_attempt_runs_for_what_is_left() -> None:
    asked = started(body(), max_runtime=timedelta(minutes=45))
    assert asked["StoppingCondition"]["MaxRuntimeInSeconds"] == 2700


def test_of_preferences_only_those_that_are_held_are_offered() -> None:
    whole = resources(InstancePreferences=PREFERENCES, VolumeSizeInGB=30)
    assert started(whole)["ResourceConfig"] == whole["ResourceConfig"]
    cut = started(whole, shape=Shape(vector={on_demand("ml.p4d.24xlarge"): 2}))
    assert cut["ResourceConfig"] == {"InstancePreferences": PREFERENCES[1:], "VolumeSizeInGB": 30}


def test_where_sagemaker_picks_the_sdk_s_note_of_the_type_stays() -> None:
    whole = resources(InstancePreferences=PREFERENCES) | {"HyperParameters": SDK}
    asked = started(whole, shape=Shape(vector={on_demand("ml.p4d.24xlarge"): 2}))
    assert asked["HyperParameters"] == SDK


def test_groups_stay_as_they_are() -> None:
    whole = resources(InstanceGroups=GROUPS) | {"HyperParameters": SDK}
    asked = started(whole)
    assert asked["ResourceConfig"] == {"InstanceGroups": GROUPS}
    assert asked["HyperParameters"] == SDK


def with_alternatives(text: str, **changes: Any) -> tuple[Shape, ...]:
    return read_request(body(Tags=tag_list({"trainmaster:alternatives": text}), **changes)).shapes


def test_alternatives_stand_in_for_the_type_of_the_request() -> None:
    shapes = with_alternatives("ml.g5.xlarge=2 ml.g5.2xlarge=1:spot@subnet-9")
    assert [shape.vector for shape in shapes] == [
        {on_demand("ml.g5.xlarge"): 2},
        {Capacity("ml.g5.2xlarge", CapacityType.SPOT): 1},
    ]
    assert [shape.subnet for shape in shapes] == [None, "subnet-9"]
    assert read_request(body(Tags=tag_list({"trainmaster:alternatives": "ml.g5.xlarge=2"}))).choice is (
        Choice.FIRST_FIT
    )


def test_an_alternative_shares_the_warm_key_of_a_job_that_asks_for_just_that() -> None:
    plain = body(
        ResourceConfig={"InstanceType": "ml.g5.xlarge", "InstanceCount": 2, "VolumeSizeInGB": 30},
        VpcConfig=NETWORK | {"Subnets": ["subnet-9"]},
    )
    (same,) = with_alternatives("ml.g5.xlarge=2@subnet-9", VpcConfig=NETWORK)
    (elsewhere,) = with_alternatives("ml.g5.xlarge=2", VpcConfig=NETWORK)
    (as_spot,) = with_alternatives("ml.g5.xlarge=2:spot@subnet-9", VpcConfig=NETWORK)
    assert same.warm_key == warm_key_of(plain) is not None
    assert elsewhere.warm_key != same.warm_key
    assert as_spot.warm_key is None


def test_a_keep_alive_of_nothing_is_no_wish() -> None:
    whole = resources(InstanceType="ml.m5.xlarge", InstanceCount=1, KeepAlivePeriodInSeconds=0)
    assert read_request(whole).keep_alive is None
