"""Group F of the fault list: fields, as far as reading a request decides them."""

import json
import re
from typing import Any

import pytest
from trainmaster.core.errors import PolicyViolationError
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.policy import parse_policy
from trainmaster.core.request.options import UserOptions
from trainmaster.core.request.request import attempt_name, read_request
from trainmaster.core.request.validation import require_valid
from trainmaster.core.submission.admission import Submission, judge

from tests.bodies import body, fields, resources, sent, spot, tag_list, tags
from tests.faults.submitting import refusal, refused_fields, submit

GROUP = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}
LARGE = GROUP | {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "InstanceGroupName": "b"}


@pytest.mark.parametrize(
    "value", ["", "-1", "1001", str(2**63), "1.5", "1e2", "high", "NaN", "true", "+1", " 1", "1_0", "\u0661"]
)
def test_F1_a_priority_that_is_no_number_from_0_to_1000_is_a_400(value: str) -> None:
    assert refused_fields(body(Tags=tags(priority=value))) == ["Tags[0].Value"]


@pytest.mark.parametrize("value", [5, 1.5, True, None])
def test_F1_a_priority_that_is_no_text_is_a_400(value: object) -> None:
    assert refused_fields(body(Tags=[{"Key": "priority", "Value": value}])) == ["Tags[0].Value"]


@pytest.mark.parametrize(
    ("given", "priority"), [([], 0), (tags(priority="0"), 0), (tags(priority="1000"), 1000)]
)
def test_F1_a_missing_priority_is_the_default(given: list[dict[str, str]], priority: int) -> None:
    whole = sent(body(Tags=given))
    require_valid(whole)
    assert read_request(whole).options.priority == priority


def test_F1_a_priority_above_the_teams_ceiling_is_a_422() -> None:
    policy = parse_policy(
        {
            "pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}],
            "teams": [{"name": "vision", "roles": "any", "max_priority": 5}],
        }
    )
    whole = body(Tags=tags(priority="6"))
    submission = Submission(body=whole, ask=read_request(whole), team="vision", submitted_by="me")
    with pytest.raises(PolicyViolationError) as caught:
        judge(submission, policy).accepted()
    assert fields(caught.value.errors) == ["Tags[0].Value"]


def test_F2_without_tags_the_defaults_hold() -> None:
    whole = sent(body(Tags=None))
    require_valid(whole)
    assert read_request(whole).options == UserOptions()


@pytest.mark.parametrize(
    ("given", "field"),
    [
        pytest.param({}, "Tags", id="a map"),
        pytest.param([{"Key": "a"}], "Tags[0].Value", id="a key without a value"),
        pytest.param([{"Value": "a"}], "Tags[0].Key", id="a value without a key"),
        pytest.param(["a"], "Tags[0]", id="no pair"),
        pytest.param(tags(a="1") + tags(a="2"), "Tags[1].Key", id="a key twice"),
        pytest.param(tag_list({str(number): "" for number in range(47)}), "Tags", id="47 tags"),
        pytest.param(tag_list({"aws:cloudformation": "a"}), "Tags[0].Key", id="reserved by AWS"),
        pytest.param(tag_list({"AWS:x": "a"}), "Tags[0].Key", id="reserved by AWS, in any case"),
        pytest.param(tag_list({"trainmaster:owner": "a"}), "Tags[0].Key", id="an option there is not"),
        pytest.param(tag_list({"trainmaster:job": "a"}), "Tags[0].Key", id="a tag of ours"),
        pytest.param(
            tag_list({"Trainmaster:Stack": "a"}), "Tags[0].Key", id="a tag of ours, in another case"
        ),
    ],
)
def test_F2_bad_tags_are_a_400_on_the_tag(given: object, field: str) -> None:
    assert refused_fields(body(Tags=given)) == [field]


def test_F2_46_tags_are_accepted() -> None:
    assert submit(json.dumps(body(Tags=tag_list({str(number): "" for number in range(46)})))).name == "p5"


@pytest.mark.parametrize(
    "name", ["", "a" * 64, "-a", "a-", "a_b", "\u00e4", "a.b", "a b", "a\n", "a/b", "-", "a-" * 31 + "a-"]
)
def test_F4_a_bad_name_is_a_400(name: str) -> None:
    assert refused_fields(body(TrainingJobName=name)) == ["TrainingJobName"]


@pytest.mark.parametrize("value", [None, 5, ["a"]])
def test_F4_a_name_that_is_no_text_is_a_400(value: object) -> None:
    assert refused_fields(body() | {"TrainingJobName": value}) == ["TrainingJobName"]
    assert refused_fields(body(TrainingJobName=None)) == ["TrainingJobName"]


@pytest.mark.parametrize("name", ["a", "1", "a--b", "A-1", "a" * 63])
def test_F4_a_good_name_is_accepted(name: str) -> None:
    assert submit(json.dumps(body(TrainingJobName=name))).name == "p5"


def test_F5_later_attempts_of_long_names_have_valid_distinct_stable_names() -> None:
    one, other = "a" * 55 + "-" + "b" * 7, "a" * 55 + "c" * 8
    entries = ("01JABCDEFGHJKMNPQRSTVWXYZ0", "01JABCDEFGHJKMNPQRSTVWXYZ1")
    made = [
        attempt_name(name, entry, attempt)
        for name, entry in zip((one, other), entries, strict=True)
        for attempt in (1, 2, 10, 1000)
    ]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", name) and len(name) <= 63 for name in made)
    assert made[0] == attempt_name(one, entries[0], 1)


@pytest.mark.parametrize("name", ["ml.p99.48xlarge", "ML.P5.48XLARGE", "p5.48xlarge", "ml.p4d.24xlarge"])
def test_F7_a_type_that_no_pool_has_is_a_422_whatever_the_service_model_knows(name: str) -> None:
    error = refusal(resources(InstanceType=name, InstanceCount=1))
    assert isinstance(error, PolicyViolationError)
    assert error.status == 422
    assert fields(error.errors) == ["ResourceConfig.InstanceType"]


@pytest.mark.parametrize("count", [0, -1, -(10**9)])
def test_F8_a_count_under_1_is_a_400(count: int) -> None:
    assert refused_fields(resources(InstanceType="ml.p5.48xlarge", InstanceCount=count)) == [
        "ResourceConfig.InstanceCount"
    ]


@pytest.mark.parametrize("volume", [0, -1])
def test_F8_a_volume_under_1_gb_is_a_400(volume: int) -> None:
    whole = resources(InstanceType="ml.p5.48xlarge", InstanceCount=1, VolumeSizeInGB=volume)
    assert refused_fields(whole) == ["ResourceConfig.VolumeSizeInGB"]


@pytest.mark.parametrize("count", [3, 10**9])
def test_F8_a_count_above_the_pools_capacity_is_a_422(count: int) -> None:
    error = refusal(resources(InstanceType="ml.p5.48xlarge", InstanceCount=count))
    assert error.status == 422
    assert [one.rule for one in error.errors] == ["never-fits"]


def test_K15_an_alternative_that_can_never_fit_is_a_422_that_names_it() -> None:
    listed = "ml.p5.48xlarge=1 ml.p5.48xlarge=999999"
    error = refusal(body(Tags=[{"Key": "trainmaster:alternatives", "Value": listed}]))
    assert error.status == 422
    ((field, message, rule),) = [(one.field, one.message, one.rule) for one in error.errors]
    assert (field, rule) == ("Tags[0].Value", "never-fits")
    assert message.startswith("ml.p5.48xlarge=999999 asks for 999999, but pool ")


def test_K15_an_instance_preference_that_can_never_fit_is_a_422_that_names_it() -> None:
    wished = {"ml.p5.48xlarge": 1, "ml.g5.xlarge": 999_999}
    preferences = [{"InstanceType": name, "InstanceCount": count} for name, count in wished.items()]
    error = refusal(resources(InstancePreferences=preferences))
    assert error.status == 422
    ((field, rule),) = [(one.field, one.rule) for one in error.errors]
    assert (field, rule) == ("ResourceConfig.InstancePreferences[1].InstanceCount", "never-fits")


def test_F9_groups_are_counted_by_type() -> None:
    whole = sent(resources(InstanceGroups=[GROUP, LARGE, GROUP | {"InstanceGroupName": "c"}]))
    require_valid(whole)
    assert read_request(whole).vector == {Capacity("ml.g5.xlarge"): 2, Capacity("ml.p5.48xlarge"): 2}


def test_F9_groups_and_a_type_are_a_400() -> None:
    whole = resources(InstanceType="ml.g5.xlarge", InstanceCount=1, InstanceGroups=[GROUP])
    assert refused_fields(whole) == ["ResourceConfig.InstanceGroups"]


def test_F9_six_groups_are_a_400() -> None:
    six = [GROUP | {"InstanceGroupName": f"group{number}"} for number in range(6)]
    assert refused_fields(resources(InstanceGroups=six)) == ["ResourceConfig.InstanceGroups"]


def test_F10_preferences_are_accepted_and_hold_every_candidate() -> None:
    preferences = [
        {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1},
        {"InstanceType": "ml.g5.xlarge", "InstanceCount": 4},
    ]
    whole = resources(InstancePreferences=preferences)
    assert submit(json.dumps(whole)).name == "p5"
    assert read_request(whole).vector == {Capacity("ml.p5.48xlarge"): 1, Capacity("ml.g5.xlarge"): 4}


PLAN = "arn:aws:sagemaker:us-east-1:111122223333:training-plan/plan"


def test_F10_a_plan_that_no_pool_has_is_a_422_and_one_of_a_preference_a_400() -> None:
    error = refusal(resources(InstanceType="ml.p5.48xlarge", InstanceCount=1, TrainingPlanArn=PLAN))
    assert (error.status, fields(error.errors)) == (422, ["ResourceConfig.TrainingPlanArn"])
    preference = {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 1, "TrainingPlanArns": [PLAN]}
    assert refused_fields(resources(InstancePreferences=[preference])) == [
        "ResourceConfig.InstancePreferences[0].TrainingPlanArns"
    ]


def test_F10_serverless_jobs_are_a_400() -> None:
    serverless = {
        "BaseModelArn": "arn:aws:sagemaker:us-east-1:aws:hub-content/SageMakerPublicHub/Model/llama/1.0.0",
        "JobType": "FineTuning",
    }
    assert refused_fields(body(ServerlessJobConfig=serverless)) == ["ServerlessJobConfig"]


@pytest.mark.parametrize("config", [None, {}, {"VolumeSizeInGB": 10}])
def test_F10_no_instances_at_all_are_a_400(config: dict[str, Any] | None) -> None:
    assert refused_fields(body(ResourceConfig=config)) == ["ResourceConfig"]


@pytest.mark.parametrize("stopping", [{"MaxRuntimeInSeconds": 0}, {"MaxRuntimeInSeconds": -5}])
def test_F16_a_job_that_may_not_run_is_a_400(stopping: dict[str, int]) -> None:
    assert refused_fields(body(StoppingCondition=stopping)) == ["StoppingCondition.MaxRuntimeInSeconds"]


@pytest.mark.parametrize("wait", [None, 0, 3599])
def test_F16_a_spot_job_that_may_not_wait_as_long_as_it_runs_is_a_400(wait: int | None) -> None:
    assert refused_fields(spot(run=3600, wait=wait)) == ["StoppingCondition.MaxWaitTimeInSeconds"]


@pytest.mark.parametrize("period", [-1, 21601])
def test_F17_a_keep_alive_out_of_range_is_a_400(period: int) -> None:
    whole = resources(InstanceType="ml.p5.48xlarge", InstanceCount=1, KeepAlivePeriodInSeconds=period)
    assert refused_fields(whole) == ["ResourceConfig.KeepAlivePeriodInSeconds"]


def test_F17_a_keep_alive_on_spot_is_a_400() -> None:
    whole = spot()
    whole["ResourceConfig"]["KeepAlivePeriodInSeconds"] = 60
    assert refused_fields(whole) == ["ResourceConfig.KeepAlivePeriodInSeconds"]


@pytest.mark.parametrize("name", ["DebugRuleConfigurations", "ProfilerRuleConfigurations"])
def test_F19_a_rule_with_an_instance_of_its_own_is_a_400(name: str) -> None:
    rule = {"RuleConfigurationName": "r", "RuleEvaluatorImage": "image", "InstanceType": "ml.m5.large"}
    assert refused_fields(body(**{name: [rule]})) == [f"{name}[0].InstanceType"]
    del rule["InstanceType"]
    assert submit(json.dumps(body(**{name: [rule]}))).name == "p5"
