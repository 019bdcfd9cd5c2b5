"""Rules: of group F what a policy allows in a field, and C15, a policy that changes while a job waits."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.core.errors import InvalidRequestError, PolicyViolationError
from trainmaster.core.jobs.model import JobState
from trainmaster.core.policy import parse_policy
from trainmaster.core.request.request import read_request
from trainmaster.core.request.validation import require_valid
from trainmaster.core.submission.admission import Submission, judge

from tests.bodies import body, resources, sent
from tests.builders import A
from tests.faults.conftest import NewWorld
from tests.faults.scenes import ends
from tests.integration.world import Crash, World

ECR = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
ROLE = "arn:aws:iam::111122223333:role/training"
KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d"
POOLS = [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2, "ml.g5.xlarge": 8}}]


def refusal(whole: dict[str, Any], **rules: Any) -> tuple[int, list[tuple[str | None, str]]]:
    """Status of the answer, and rule and field of each error; what is accepted is 201 with none."""
    try:
        read = sent(whole)
        require_valid(read)
        policy = parse_policy({"pools": POOLS, "rules": rules})
        submission = Submission(body=read, ask=read_request(read), team="default", submitted_by="me")
        judge(submission, policy).accepted()
    except (InvalidRequestError, PolicyViolationError) as error:
        return int(error.status), [(one.rule, one.field) for one in error.errors]
    return 201, []


ACCEPTED: tuple[int, list[tuple[str | None, str]]] = (201, [])


def test_F7_a_type_that_the_rules_do_not_allow_is_a_422_even_where_a_pool_has_it() -> None:
    whole = resources(InstanceType="ml.g5.xlarge", InstanceCount=1)
    assert refusal(whole, instance_types=["ml.g5.*"]) == ACCEPTED
    assert refusal(whole, instance_types=["ml.p5.*"]) == (
        422,
        [("instance_types", "ResourceConfig.InstanceType")],
    )


@pytest.mark.parametrize(
    "arn",
    [
        pytest.param("arn:aws:iam::999988887777:role/training", id="another account"),
        pytest.param("arn:aws-us-gov:iam::111122223333:role/training", id="another partition"),
        pytest.param("arn:aws:iam::111122223333:role/path/training", id="a path"),
        pytest.param("arn:aws:iam::111122223333:role/x/../training", id="dots"),
        pytest.param("arn:aws:iam::111122223333:role/training-2", id="one that begins alike"),
        pytest.param("arn:aws:iam::111122223333:role//training", id="a second slash"),
    ],
)
def test_F11_a_role_is_the_very_one_that_is_listed(arn: str) -> None:
    assert refusal(body(RoleArn=ROLE), roles=[ROLE]) == ACCEPTED
    assert refusal(body(RoleArn=arn), roles=[ROLE]) == (422, [("roles", "RoleArn")])


@pytest.mark.parametrize("arn", [f"{ROLE}\n", f" {ROLE}", ROLE + "\u200b", "training"])
def test_F11_what_is_no_role_is_a_400_whatever_the_rules(arn: str) -> None:
    assert refusal(body(RoleArn=arn))[0] == 400
    assert refusal(body(RoleArn=arn), roles=[ROLE])[0] == 400


@pytest.mark.parametrize(
    ("image", "is_allowed"),
    [
        pytest.param(f"{ECR}/pytorch", True, id="no tag"),
        pytest.param(f"{ECR}/pytorch:2.8", True, id="a tag"),
        pytest.param(f"{ECR}/pytorch@sha256:{'0a' * 32}", True, id="a digest"),
        pytest.param(f"{ECR}.evil.com/pytorch", False, id="a registry that begins alike"),
        pytest.param(f"evil.com/{ECR}/pytorch", False, id="the registry as part of a name"),
        pytest.param(f"{ECR}@evil.com/pytorch", False, id="the registry as a user"),
        pytest.param(f"{ECR}/pytorch-evil", False, id="a repository that begins alike"),
        pytest.param(f"{ECR}/pytorch/evil", False, id="a repository below it"),
        pytest.param(f"{ECR}/../x/pytorch", False, id="dots"),
        pytest.param("pytorch", False, id="no registry"),
    ],
)
def test_F12_an_image_is_taken_apart_and_compared(image: str, *, is_allowed: bool) -> None:
    whole = body(AlgorithmSpecification={"TrainingImage": image, "TrainingInputMode": "File"})
    expected = ACCEPTED if is_allowed else (422, [("images", "AlgorithmSpecification.TrainingImage")])
    assert refusal(whole, images=[f"{ECR}/pytorch"]) == expected


@pytest.mark.parametrize(
    ("uri", "status"),
    [
        pytest.param("s3://bucket/team-a/x", 201, id="inside"),
        pytest.param("s3://bucket/team-a//x", 201, id="a second slash"),
        pytest.param("s3://bucket/team-a/x/../y", 201, id="dots that stay inside"),
        pytest.param("s3://bucket/team-a/../team-b", 422, id="dots that lead out"),
        pytest.param("s3://bucket/team-b/../team-a", 422, id="dots that lead in: S3 takes them literally"),
        pytest.param("s3://bucket/team-ab/x", 422, id="a neighbour that begins alike"),
        pytest.param("s3://bucket2/team-a/x", 422, id="a bucket that begins alike"),
        pytest.param("s3://bucket/", 422, id="the whole bucket"),
        pytest.param("https://bucket.s3.amazonaws.com/team-a/x", 400, id="another scheme"),
        pytest.param("s3://Bucket/team-a/x", 400, id="upper case"),
        pytest.param("s3://bucket/team-a/x ", 400, id="a space behind it"),
        pytest.param(" s3://bucket/team-a/x", 400, id="a space before it"),
    ],
)
def test_F13_a_place_in_s3_is_matched_by_whole_parts(uri: str, status: int) -> None:
    whole = body(OutputDataConfig={"S3OutputPath": uri})
    expected = {
        201: [],
        400: [(None, "OutputDataConfig.S3OutputPath")],
        422: [("s3_prefixes", "OutputDataConfig.S3OutputPath")],
    }
    assert refusal(whole, s3_prefixes=["s3://bucket/team-a/"]) == (status, expected[status])


@pytest.mark.parametrize(
    ("network", "fields"),
    [
        ({"Subnets": [], "SecurityGroupIds": ["sg-1"]}, ["VpcConfig.Subnets"]),
        (
            {"Subnets": [f"subnet-{number}" for number in range(17)], "SecurityGroupIds": ["sg-1"]},
            ["VpcConfig.Subnets"],
        ),
        ({"Subnets": ["subnet-1"], "SecurityGroupIds": []}, ["VpcConfig.SecurityGroupIds"]),
        ({"Subnets": ["subnet-1"]}, ["VpcConfig.SecurityGroupIds"]),
    ],
)
def test_F14_no_subnets_or_too_many_are_a_400(network: dict[str, Any], fields: list[str]) -> None:
    assert refusal(body(VpcConfig=network)) == (400, [(None, field) for field in fields])


def test_F14_subnets_of_a_foreign_vpc_fail_at_the_second_refusal_and_the_next_job_starts(
    world: World,
) -> None:
    foreign = {"Subnets": ["subnet-0f"], "SecurityGroupIds": ["sg-1"]}
    world.submit("job1", priority=1, VpcConfig=foreign)
    world.submit("job2")
    world.sagemaker.refuse["CreateTrainingJob"] = [("ValidationException", 400)]
    world.schedule()
    assert world.states("job1", "job2") == ["pending", "running"]
    world.sagemaker.refuse["CreateTrainingJob"] = [("ValidationException", 400)]
    world.a_minute_passes()
    assert world.states("job1", "job2") == ["failed", "running"]
    assert world.api("GET", "/jobs/job1")["reason"]["code"] == "failed-to-start"
    world.check("job1", "job2")


@pytest.mark.parametrize(
    ("key", "status"),
    [
        pytest.param(KEY, 201, id="an ARN"),
        pytest.param("arn:aws:kms:us-east-1:999988887777:key/0a1b2c3d", 422, id="of another account"),
        pytest.param("0a1b2c3d", 422, id="an id"),
        pytest.param("alias/training", 422, id="an alias"),
        pytest.param("arn:aws:kms:us-east-1:111122223333:alias/training", 422, id="the ARN of an alias"),
    ],
)
def test_F15_a_kms_key_is_given_by_its_arn(key: str, status: int) -> None:
    whole = body(OutputDataConfig={"S3OutputPath": "s3://bucket", "KmsKeyId": key})
    expected = [] if status == 201 else [("kms_keys", "OutputDataConfig.KmsKeyId")]
    assert refusal(whole, kms_keys=["arn:aws:kms:us-east-1:111122223333:key/*"]) == (status, expected)


def test_F15_an_id_or_alias_is_told_to_give_the_arn() -> None:
    whole = sent(body(OutputDataConfig={"S3OutputPath": "s3://bucket", "KmsKeyId": "alias/training"}))
    policy = parse_policy({"pools": POOLS, "rules": {"kms_keys": [KEY]}})
    submission = Submission(body=whole, ask=read_request(whole), team="default", submitted_by="me")
    (error,) = judge(submission, policy).violations
    assert error.hint.startswith("give the key ARN")


def test_F16_more_time_than_the_rule_allows_is_a_422() -> None:
    whole = body(StoppingCondition={"MaxRuntimeInSeconds": 7201})
    assert refusal(whole, max_runtime="2h") == (
        422,
        [("max_runtime", "StoppingCondition.MaxRuntimeInSeconds")],
    )
    assert refusal(body(StoppingCondition={"MaxRuntimeInSeconds": 7200}), max_runtime="2h") == ACCEPTED


def test_F3_a_team_tag_of_no_team_of_the_caller_is_a_403_and_nothing_is_stored(
    new_world: NewWorld,
) -> None:
    teams = [
        {"name": "vision", "principals": ["arn:aws:iam::123456789012:user/ada"], "roles": "any"},
        {"name": "speech", "principals": ["arn:aws:iam::123456789012:role/speech"], "roles": "any"},
    ]
    world = new_world({"pools": [{"name": "main", "capacity": {A: 2}}], "teams": teams})
    before = world.items()
    for team in ("speech", "nobody", "Vision"):
        answer = world.submit("job1", Tags=[{"Key": "team", "Value": team}])
        assert answer["status"] == 403, team
    assert world.items() == before
    assert world.submit("job1", Tags=[{"Key": "team", "Value": "vision"}])["status"] == 201


# ---- C15


def new_rules(world: World, **rules: Any) -> None:
    policies = world.wiring.policies
    document = {"pools": [{"name": "main", "capacity": {A: 2}}], "rules": rules}
    policies.put(document, pools=["main"], replaces=policies.current())


def tags(owner: str | None = None, priority: str = "0") -> list[dict[str, str]]:
    given = {"priority": priority} | ({"owner": owner} if owner else {})
    return [{"Key": key, "Value": value} for key, value in given.items()]


def test_C15_a_waiting_job_that_a_new_rule_forbids_fails_to_start_and_the_next_goes_on(world: World) -> None:
    world.submit("job1", Tags=tags(priority="5"))
    world.submit("job2", Tags=tags("ada"))
    new_rules(world, required_tags=["owner"], vpc_required={"mode": "audit"})
    world.schedule()
    assert world.states("job1", "job2") == ["failed", "running"]
    view = world.api("GET", "/jobs/job1")
    assert view["reason"] == {
        "code": "failed-to-start",
        "message": "the policy no longer allows it: required_tags: Tags.owner is required",
    }
    assert [(line["from"], line["to"]) for line in view["history"]] == [
        (None, "pending"),
        ("pending", "failed"),
    ]
    assert view["attempts"] == []
    assert world.sagemaker.creates == ["job2"]
    world.check("job1", "job2")


def test_C15_a_preempted_job_is_checked_again_too(preempting: World) -> None:
    new_rules(preempting, max_runtime="30m")
    ends(preempting, "job1", "Stopped")
    assert preempting.states("job1", "job4") == ["failed", "failed"]
    assert "max_runtime" in preempting.api("GET", "/jobs/job1")["reason"]["message"]
    assert preempting.job("job2").state is JobState.RUNNING, "what runs is left alone"
    preempting.check("job1", "job2", "job4")


def test_C15_nobody_is_stopped_for_a_job_that_a_new_rule_forbids(busy: World) -> None:
    busy.submit("urgent", Tags=tags(priority="9"))
    new_rules(busy, required_tags=["owner"])
    busy.schedule()
    assert busy.states("job1", "job2", "urgent") == ["running", "running", "failed"]
    assert [job.stops for job in busy.sagemaker.jobs.values()] == [0, 0]
    busy.check("job1", "job2", "urgent")


def test_C15_a_rule_that_is_only_audited_lets_the_job_start(world: World) -> None:
    world.submit("job1")
    new_rules(world, vpc_required={"mode": "audit"})
    world.schedule()
    assert world.states("job1") == ["running"]


def test_C15_a_held_job_is_checked_when_it_is_released_and_due(world: World) -> None:
    world.submit("job1")
    world.patch("job1", held=True)
    new_rules(world, vpc_required=True)
    world.schedule()
    assert world.states("job1") == ["held"]
    world.patch("job1", held=False)
    world.schedule()
    assert world.states("job1") == ["failed"]


def test_C15_a_rule_that_is_taken_back_meanwhile_fails_nobody(world: World) -> None:
    world.submit("job1")
    new_rules(world, vpc_required=True)
    world.meanwhile["TransactWriteItems"] = lambda: new_rules(world)
    world.schedule()
    assert world.states("job1") == ["running"]


@pytest.mark.thorough
def test_C15_a_death_at_any_call_changes_nothing_about_the_end(world: World) -> None:
    world.submit("job1", Tags=tags(priority="5"))
    world.submit("job2", Tags=tags("ada"))
    new_rules(world, required_tags=["owner"])
    saved = world.save()
    calls = len(world.calls_of(world.schedule))
    assert world.states("job1", "job2") == ["failed", "running"]
    for at in range(calls):
        for phase in ("before", "after"):
            world.restore(saved)
            world.dies(world.schedule, Crash(at=at, phase=phase))
            world.now += timedelta(seconds=30)
            world.wake()
            world.a_minute_passes()
            assert world.states("job1", "job2") == ["failed", "running"], (at, phase)
            assert world.sagemaker.creates == ["job2"], (at, phase)


def test_C15_a_retried_job_is_checked_again(busy: World) -> None:
    new_rules(busy, network_isolation=True)
    ends(busy, "job1", "Failed", reason="CapacityError: Unable to provision requested ML compute capacity.")
    busy.now += timedelta(minutes=15)
    busy.reconcile()
    busy.schedule()
    assert busy.states("job1", "job2") == ["failed", "running"]
    assert busy.api("GET", "/jobs/job1")["reason"]["code"] == "failed-to-start"
