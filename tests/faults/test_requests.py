"""Groups E and F of the fault list, as far as reading a request decides them."""

import json
import re
from typing import Any

import pytest
from trainmaster.errors import (
    InvalidRequestError,
    PayloadTooLargeError,
    PolicyViolationError,
    TrainmasterError,
)
from trainmaster.jobs import Capacity
from trainmaster.policy import PoolPolicy, parse_policy
from trainmaster.requests import attempt_name, canonical, read_request
from trainmaster.strict_json import MAX_BODY_BYTES, parse_object
from trainmaster.submission import Submission, judge
from trainmaster.user_options import UserOptions
from trainmaster.validation import require_valid

from tests.bodies import body, fields, resources, sent, spot, tag_list, tags

JSON = "application/json"
POLICY = parse_policy({"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2, "ml.g5.xlarge": 8}}]})
GROUP = {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}
LARGE = GROUP | {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "InstanceGroupName": "b"}


def submit(text: str | None, *, base64: bool = False, content_type: str | None = JSON) -> PoolPolicy:
    """What the API does with a body before it stores anything."""
    whole = parse_object(text, base64=base64, content_type=content_type)
    require_valid(whole)
    ask = read_request(whole)
    return judge(Submission(body=whole, ask=ask, team="default", submitted_by="me"), POLICY).accepted()


def refusal(whole: object, **how: Any) -> TrainmasterError:
    text = whole if isinstance(whole, str) or whole is None else json.dumps(whole)
    with pytest.raises(TrainmasterError) as caught:
        submit(text, **how)
    assert all(error.message and error.hint for error in caught.value.errors)
    return caught.value


def refused_fields(whole: object) -> list[str]:
    """The fields of a 400."""
    error = refusal(whole)
    assert isinstance(error, InvalidRequestError)
    assert error.status == 400
    return fields(error.errors)


def test_the_body_that_all_others_here_vary_is_accepted() -> None:
    assert submit(json.dumps(body())).name == "p5"


@pytest.mark.parametrize("text", [None, "", "no JSON", "[]", '"text"', "null", "5", "true"])
def test_E1_what_is_no_json_object_is_a_400_on_the_body(text: str | None) -> None:
    assert refused_fields(text) == ["body"]


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/xml"])
def test_E1_another_content_type_is_a_400_on_the_header(content_type: str | None) -> None:
    error = refusal(body(), content_type=content_type)
    assert (error.status, fields(error.errors)) == (400, ["Content-Type"])


def test_E1_a_body_marked_as_binary_is_a_400() -> None:
    assert refusal("e30=", base64=True).status == 400


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_E2_a_number_that_is_not_finite_is_a_400_on_its_field(number: str) -> None:
    text = json.dumps(body(zzz=0)).replace(
        '"zzz": 0', f'"RetryStrategy": {{"MaximumRetryAttempts": {number}}}'
    )
    assert refused_fields(text) == ["RetryStrategy.MaximumRetryAttempts"]


def test_E3_a_key_given_twice_is_a_400_on_it() -> None:
    text = json.dumps(body()).replace('"InstanceCount": 1', '"InstanceCount": 1, "InstanceCount": 2')
    assert refused_fields(text) == ["ResourceConfig.InstanceCount"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"a":' + "[" * 100_000])
def test_E4_100_000_levels_are_a_400(text: str) -> None:
    assert refused_fields(text if len(text) <= MAX_BODY_BYTES else text[:MAX_BODY_BYTES]) == ["body"]


def test_E4_an_integer_of_5_000_digits_is_a_400_on_its_field() -> None:
    text = json.dumps(body()).replace('"InstanceCount": 1', f'"InstanceCount": {"9" * 5000}')
    assert refused_fields(text) == ["ResourceConfig.InstanceCount"]


@pytest.mark.parametrize("size", [400_000, 1_000_000, 6_000_000])
def test_E5_a_body_over_the_limit_is_a_413(size: int) -> None:
    error = refusal(body(Environment={"A": "x" * size}))
    assert isinstance(error, PayloadTooLargeError)
    assert error.status == 413


@pytest.mark.parametrize("letter", ["x", "\u00e4", "\u4e2d", "\U0001f600"])
def test_E5_what_is_stored_of_an_accepted_body_is_no_larger_than_the_limit(letter: str) -> None:
    size = len(letter.encode())
    filling = {f"k{number}": letter * (2500 // size) for number in range(100)}
    text = json.dumps(body(HyperParameters=filling), ensure_ascii=False)
    assert submit(text).name == "p5"
    assert len(canonical(json.loads(text))) <= len(text.encode()) <= MAX_BODY_BYTES


def test_E6_an_unknown_field_is_a_400_that_names_it_and_what_was_meant() -> None:
    error = refusal(body(Resourceconfig=body()["ResourceConfig"], ResourceConfig=None))
    assert error.status == 400
    (typo,) = (one for one in error.errors if one.field == "Resourceconfig")
    assert "ResourceConfig" in typo.hint


@pytest.mark.parametrize("odd", ["\u202ejob", "job\u0000", "jo\ud800b", "job\U0001f600", "j\u00f6b"])
def test_E7_odd_characters_in_a_name_are_a_400(odd: str) -> None:
    assert refused_fields(body(TrainingJobName=odd)) == ["TrainingJobName"]


@pytest.mark.parametrize("odd", ["\u0000", "\u0007", "\u009b", "a\ud800", "\udc00"])
def test_E7_control_characters_and_half_characters_anywhere_are_a_400_on_the_field(odd: str) -> None:
    assert refused_fields(body(HyperParameters={"a": odd})) == ["HyperParameters.a"]
    assert refused_fields(body(Environment={"a": odd})) == ["Environment.a"]
    assert refused_fields(body(Tags=tags(a=odd))) == ["Tags[0].Value"]


@pytest.mark.parametrize("odd", ["\u202etxet", "\U0001f600", "\u200b", "e\u0301"])
def test_E7_other_free_text_is_kept_as_it_is(odd: str) -> None:
    whole = sent(body(HyperParameters={"a": odd}, Environment={"a": odd}))
    require_valid(whole)
    kept = json.loads(canonical(whole))
    assert (kept["HyperParameters"], kept["Environment"]) == ({"a": odd}, {"a": odd})


@pytest.mark.parametrize("value", [1, 0.1, True, None, [], {}])
def test_E8_a_hyperparameter_that_is_no_string_is_a_400_on_it(value: object) -> None:
    assert refused_fields(body(HyperParameters={"lr": value})) == ["HyperParameters.lr"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"HyperParameters": {str(number): "" for number in range(101)}}, "HyperParameters"),
        ({"HyperParameters": {"k" * 257: ""}}, "HyperParameters[" + json.dumps("k" * 64 + "...") + "]"),
        ({"HyperParameters": {"k": "v" * 2501}}, "HyperParameters.k"),
        ({"Environment": {"A-B": ""}}, "Environment.A-B"),
        ({"Environment": {"A": "v" * 513}}, "Environment.A"),
    ],
)
def test_E9_too_many_or_too_long_is_a_400_on_the_field(change: dict[str, Any], field: str) -> None:
    assert refused_fields(body(**change)) == [field]


def test_E9_the_longest_that_the_service_model_allows_is_accepted() -> None:
    most = {f"{number:0256}": "v" * 2400 for number in range(90)} | {"k": "v" * 2500}
    assert submit(json.dumps(body(HyperParameters=most, Environment={"A": "v" * 512}))).name == "p5"


def test_E10_deep_nesting_inside_a_field_is_a_400_on_it() -> None:
    deep = '{"a":' * 200 + "1" + "}" * 200
    text = json.dumps(body(zzz=0)).replace('"zzz": 0', f'"ExperimentConfig": {deep}')
    (field,) = refused_fields(text)
    assert field.startswith("ExperimentConfig.a.a")


@pytest.mark.parametrize("value", [True, False, "1", 1.0, 1.5])
def test_E11_a_count_that_is_no_integer_is_a_400_on_it(value: object) -> None:
    whole = resources(InstanceType="ml.p5.48xlarge", InstanceCount=value)
    assert refused_fields(whole) == ["ResourceConfig.InstanceCount"]


@pytest.mark.parametrize("behind", ["{}", "x", "\x00", "\r\n0\r\n\r\n"])
def test_E12_data_behind_the_json_is_a_400(behind: str) -> None:
    assert refused_fields(json.dumps(body()) + behind) == ["body"]


def test_E12_compressed_or_chunked_data_is_a_400() -> None:
    assert refused_fields("\x1f\ufffd\x08\x00" + "\ufffd" * 50) == ["body"]
    assert refused_fields("1a\r\n" + json.dumps(body())) == ["body"]


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
            "teams": [{"name": "vision", "max_priority": 5}],
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


def test_F10_training_plans_are_a_400() -> None:
    whole = resources(InstanceType="ml.p5.48xlarge", InstanceCount=1, TrainingPlanArn=PLAN)
    assert refused_fields(whole) == ["ResourceConfig.TrainingPlanArn"]
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


@pytest.mark.parametrize("stopping", [None, {}, {"MaxRuntimeInSeconds": 0}, {"MaxRuntimeInSeconds": -5}])
def test_F16_a_job_without_a_run_time_is_a_400(stopping: dict[str, int] | None) -> None:
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


SECRETS = {
    "access key": "AKIAIOSFODNN7EXAMPLE",
    "session key": '"ASIAIOSFODNN7EXAMPLE"',
    "secret key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "PEM": "-----BEGIN RSA PRIVATE KEY----- MIIE",
    "GitHub": "ghp_" + "a1B2" * 9,
    "GitLab": "glpat-" + "a1B2" * 5,
    "Hugging Face": "hf_" + "aBcD" * 9,
    "OpenAI": "sk-proj-" + "a1B2" * 6,
    "Slack": "xoxb-123456789012-abcdef",
    "JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "URL": "postgres://me:hunter2@db.example/train",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
@pytest.mark.parametrize("place", ["HyperParameters", "Environment"])
def test_F18_what_looks_like_a_secret_is_a_400_that_does_not_repeat_it(place: str, secret: str) -> None:
    error = refusal(body(**{place: {"token": secret}}))
    assert (error.status, fields(error.errors)) == (400, [f"{place}.token"])
    assert secret not in f"{error} {error.detail} {error.errors}"


@pytest.mark.parametrize(
    "value",
    [
        "s3://bucket/prefix/model.tar.gz",
        "arn:aws:secretsmanager:us-east-1:111122223333:secret:wandb",
        "0123456789abcdef0123456789abcdef01234567",
        "meta-llama/Llama-3.1-8B",
        "sk-learn-contrib",
        "http://10.0.0.1:8080/metrics",
        '{"max_tokens": 4096, "pad_token": "<pad>"}',
    ],
)
def test_F18_what_is_no_secret_is_accepted(value: str) -> None:
    assert (
        submit(json.dumps(body(HyperParameters={"token": value}, Environment={"token": value}))).name == "p5"
    )


@pytest.mark.parametrize("name", ["DebugRuleConfigurations", "ProfilerRuleConfigurations"])
def test_F19_a_rule_with_an_instance_of_its_own_is_a_400(name: str) -> None:
    rule = {"RuleConfigurationName": "r", "RuleEvaluatorImage": "image", "InstanceType": "ml.m5.large"}
    assert refused_fields(body(**{name: [rule]})) == [f"{name}[0].InstanceType"]
    del rule["InstanceType"]
    assert submit(json.dumps(body(**{name: [rule]}))).name == "p5"
