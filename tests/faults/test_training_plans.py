"""Training plans: what a request may say about them, and what is refused at the door."""

from dataclasses import replace
from typing import Any

import pytest
from trainmaster.core.errors import FieldError, InvalidRequestError
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.policy.plan_windows import PlanSeen
from trainmaster.core.request.request import read_request
from trainmaster.core.request.validation import require_valid
from trainmaster.core.submission.admission import Submission, judge

from tests.bodies import body

P5, G5 = "ml.p5.48xlarge", "ml.g5.xlarge"
SPRING = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/spring"
AUTUMN = SPRING.replace("spring", "autumn")
TAG = "trainmaster:plan"


def policy(*plans: object, seen: tuple[PlanSeen, ...] = ()) -> Policy:
    p5 = {"name": "p5", "capacity": {P5: 1}, "plans": list(plans)}
    document = {
        "pools": [p5, {"name": "g5", "capacity": {G5: 8}}],
        "teams": [{"name": name, "roles": "any"} for name in ("vision", "audio")],
    }
    parsed = parse_policy(document)
    first, *others = parsed.pools
    return replace(parsed, pools=(replace(first, seen_plans={plan.arn: plan for plan in seen}), *others))


def described(arn: str = SPRING, *, kind: str = P5, total: int = 4) -> PlanSeen:
    return PlanSeen(arn=arn, status="Active", instance_type=kind, total=total)


def asking(
    kind: str = P5, count: int = 1, *, arn: str | None = None, tag: str | None = None, **more: Any
) -> dict[str, Any]:
    resources: dict[str, Any] = {"InstanceType": kind, "InstanceCount": count, "VolumeSizeInGB": 10}
    resources |= {} if arn is None else {"TrainingPlanArn": arn}
    tags = [] if tag is None else [{"Key": TAG, "Value": tag}]
    whole: dict[str, Any] = body(ResourceConfig=resources, Tags=tags) | more
    require_valid(whole)
    return whole


def refusals(whole: dict[str, Any], rules: Policy, *, team: str = "vision") -> list[FieldError]:
    submission = Submission(body=whole, ask=read_request(whole), team=team, submitted_by="me")
    return [error for error in judge(submission, rules).violations if error.rule != "roles"]


def lines(errors: list[FieldError]) -> list[str]:
    return [f"{error.field}: {error.message}; {error.hint} ({error.rule})" for error in errors]


def test_Q5_an_arn_that_no_pool_has_is_refused_with_those_that_it_has() -> None:
    (line,) = lines(refusals(asking(arn=AUTUMN), policy({"arn": SPRING})))
    assert line == f"ResourceConfig.TrainingPlanArn: {AUTUMN} is not a plan of pool p5; use {SPRING} (plan)"
    (line,) = lines(refusals(asking(arn=AUTUMN), policy()))
    assert line.endswith("is not a plan of pool p5; leave the plan out, or ask an admin to write it (plan)")


def test_Q5_a_plan_of_another_type_is_refused_once_its_type_is_known() -> None:
    plan = {"arn": SPRING}
    assert refusals(asking(arn=SPRING), policy(plan)) == [], "nobody knows its type yet"
    (line,) = lines(refusals(asking(arn=SPRING), policy(plan, seen=(described(kind="ml.p4d.24xlarge"),))))
    assert line == (
        "ResourceConfig.TrainingPlanArn: the job asks for ml.p5.48xlarge, but plan spring is of"
        " ml.p4d.24xlarge; ask for ml.p4d.24xlarge (plan)"
    )
    (line,) = lines(refusals(asking(tag="only"), policy(plan, seen=(described(kind="ml.p4d.24xlarge"),))))
    assert line.startswith("Tags[0].Value: the job asks for ml.p5.48xlarge, but plan spring is of ")


@pytest.mark.parametrize("use", ["first", "only", "never"])
def test_Q5_the_tag_is_refused_where_the_pool_has_no_plans(use: str) -> None:
    (line,) = lines(refusals(asking(tag=use), policy()))
    assert line == (
        f"Tags[0].Value: of trainmaster:plan is {use}, but pool p5 has no training plans; leave the tag out,"
        " or ask an admin to write the plan (plan)"
    )
    assert refusals(asking(tag=use), policy({"arn": SPRING})) == []


def test_Q5_a_plan_that_the_team_may_not_use_is_refused() -> None:
    rules = policy({"arn": SPRING, "teams": ["audio"]}, {"arn": AUTUMN, "teams": ["vision"]})
    (line,) = lines(refusals(asking(arn=SPRING), rules))
    assert line == (
        "ResourceConfig.TrainingPlanArn: team vision may not use training plan spring of pool p5;"
        " use autumn (plan)"
    )
    assert refusals(asking(tag="only"), rules) == []
    closed = policy({"arn": SPRING, "teams": ["audio"]})
    assert len(refusals(asking(tag="only"), closed)) == 1
    assert refusals(asking(tag="first"), closed) == [], "it runs on demand"


def test_Q5_more_instances_than_the_plan_has_are_refused() -> None:
    rules = policy({"arn": SPRING}, seen=(described(total=4),))
    assert refusals(asking(count=4, arn=SPRING), rules) == []
    (line,) = lines(refusals(asking(count=5, arn=SPRING), rules))
    assert line == (
        "ResourceConfig.TrainingPlanArn: the job asks for 5, but plan spring has 4 ml.p5.48xlarge in all;"
        " ask for at most 4 (plan)"
    )


def test_a_job_that_only_a_plan_has_room_for_is_accepted() -> None:
    plan = {"arn": SPRING, "teams": ["vision"]}
    rules = policy(plan, seen=(described(total=4),))
    assert refusals(asking(count=4), rules) == []
    assert [error.rule for error in refusals(asking(count=5), rules)] == ["never-fits"]
    assert [error.rule for error in refusals(asking(count=4), rules, team="audio")] == ["never-fits"]
    assert [error.rule for error in refusals(asking(count=4, tag="never"), rules)] == ["never-fits"]
    assert refusals(asking(count=4), policy(plan)) == [], "the plan is not described yet"


@pytest.mark.parametrize(
    ("more", "field", "message"),
    [
        pytest.param({"tag": "always"}, "Tags[0].Value", "none of first, only and never", id="no such word"),
        pytest.param({"tag": "never", "arn": SPRING}, "Tags[0].Value", "names a plan", id="never on a plan"),
        pytest.param({"tag": "first", "arn": SPRING}, "Tags[0].Value", "names a plan", id="first on a plan"),
        pytest.param(
            {"arn": SPRING, "EnableManagedSpotTraining": True},
            "ResourceConfig.TrainingPlanArn",
            "managed spot training",
            id="spot on a plan",
        ),
        pytest.param(
            {"tag": "only", "EnableManagedSpotTraining": True},
            "Tags[0].Value",
            "managed spot training",
            id="spot on plans only",
        ),
        pytest.param({"arn": "spring"}, "ResourceConfig.TrainingPlanArn", "at least 50", id="no ARN"),
    ],
)
def test_what_excludes_each_other_is_a_400(more: dict[str, Any], field: str, message: str) -> None:
    if "EnableManagedSpotTraining" in more:
        more = more | {"StoppingCondition": {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}}
    with pytest.raises(InvalidRequestError) as caught:
        asking(**more)
    ((at, said, hint),) = [(error.field, error.message, error.hint) for error in caught.value.errors]
    assert at == field
    assert message in said
    assert hint


def test_groups_preferences_and_spot_alternatives_exclude_a_plan() -> None:
    groups = [{"InstanceGroupName": "a", "InstanceType": P5, "InstanceCount": 1}]
    spot = [
        {"Key": TAG, "Value": "only"},
        {"Key": "trainmaster:alternatives", "Value": f"{P5}=1 {P5}=1:spot"},
    ]
    for whole, field in (
        (
            body(ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 10, "TrainingPlanArn": SPRING}),
            "ResourceConfig.TrainingPlanArn",
        ),
        (body(Tags=spot), "Tags[1].Value"),
    ):
        with pytest.raises(InvalidRequestError) as caught:
            require_valid(whole)
        assert [error.field for error in caught.value.errors] == [field]


def test_groups_of_one_type_stay_off_the_plans_of_their_pool() -> None:
    groups = [{"InstanceGroupName": name, "InstanceType": P5, "InstanceCount": 1} for name in ("a", "b")]
    whole = body(ResourceConfig={"InstanceGroups": groups, "VolumeSizeInGB": 10})
    require_valid(whole)
    (shape,) = read_request(whole).shapes
    assert ({str(key): count for key, count in shape.vector.items()}, shape.avoids_plans) == ({P5: 2}, True)
    rules = policy({"arn": SPRING}, seen=(described(total=4),))
    assert [error.rule for error in refusals(whole, rules)] == ["never-fits"], "one on demand is all there is"


def test_a_preference_that_names_a_plan_is_refused_with_the_way_out() -> None:
    preferences = [{"InstanceType": P5, "TrainingPlanArns": [SPRING]}, {"InstanceType": G5}]
    whole = body(
        ResourceConfig={"InstancePreferences": preferences, "InstanceCount": 1, "VolumeSizeInGB": 10}
    )
    with pytest.raises(InvalidRequestError) as caught:
        require_valid(whole)
    assert [(error.field, error.hint) for error in caught.value.errors] == [
        ("ResourceConfig.InstancePreferences[0].TrainingPlanArns", "remove it, or give one InstanceType")
    ]


def test_only_and_never_are_in_the_shapes_of_the_job() -> None:
    named, only, never, plain = (
        read_request(whole).shapes
        for whole in (asking(arn=SPRING), asking(tag="only"), asking(tag="never"), asking(tag="first"))
    )
    assert [str(capacity) for capacity in named[0].vector] == ["ml.p5.48xlarge:plan/spring"]
    assert [str(capacity) for capacity in only[0].vector] == ["ml.p5.48xlarge:plan"]
    assert (never[0].avoids_plans, plain[0].avoids_plans) == (True, None)
    assert plain == read_request(asking()).shapes
    assert [shape.warm_key for shape in (*named, *only)] == [None, None]
