"""What each rule is against, with the field that says so."""

from typing import Any

import pytest
from trainmaster.core.policy import parse_policy
from trainmaster.core.policy.job_rules import Mode
from trainmaster.core.rules import Violation, check

from tests.bodies import body, resources, spot, tag_list, tags

P5, G5 = "ml.p5.48xlarge", "ml.g5.12xlarge"
ROLE = "arn:aws:iam::111122223333:role/vision-training"
REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
IMAGE = f"{REGISTRY}/pytorch-training"
KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-0000-1111-2222-333344445555"
NETWORK = {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}


def found(request: dict[str, Any], *, team: str = "vision", **rules: Any) -> list[tuple[str, str]]:
    """Field and message of what the rules are against."""
    violations = check(request, team=team, policy=parse_policy({"rules": rules}))
    assert all(one.hint and one.mode is Mode.ENFORCE for one in violations)
    assert {one.rule for one in violations} <= set(rules)
    return [(one.field, one.message) for one in violations]


def fields(request: dict[str, Any], **rules: Any) -> list[str]:
    return [field for field, _ in found(request, **rules)]


def preferences(*shapes: tuple[str, int]) -> dict[str, Any]:
    return resources(
        InstancePreferences=[{"InstanceType": kind, "InstanceCount": count} for kind, count in shapes]
    )


def groups(*shapes: tuple[str, int]) -> dict[str, Any]:
    return resources(
        InstanceGroups=[
            {"InstanceType": kind, "InstanceCount": count, "InstanceGroupName": f"g{index}"}
            for index, (kind, count) in enumerate(shapes)
        ]
    )


def alternatives(text: str, **changes: Any) -> dict[str, Any]:
    return body(Tags=tag_list({"trainmaster:alternatives": text}), **changes)


def image(name: str) -> dict[str, Any]:
    return body(AlgorithmSpecification={"TrainingImage": name, "TrainingInputMode": "File"})


def channel(uri: str, kind: str = "S3Prefix") -> dict[str, Any]:
    source = {"S3DataSource": {"S3DataType": kind, "S3Uri": uri}}
    return {"ChannelName": "train", "DataSource": source}


def test_without_rules_nothing_is_against_them() -> None:
    assert check(body(), team="vision", policy=parse_policy({})) == ()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"model": "llama", "phase": "pretrain"}, [], id="both"),
        pytest.param({"phase": "pretrain"}, [("Tags.model", "is required")], id="one is missing"),
        pytest.param(
            {"model": "llama", "phase": "tuning"},
            [("Tags[1].Value", "of phase is none of the allowed values")],
            id="a value that is not listed",
        ),
        pytest.param(
            {"model": "Llama", "phase": "pretrain"},
            [("Tags[0].Value", "of model is none of the allowed values")],
            id="a value that does not match",
        ),
        pytest.param(
            {"Model": "llama"},
            [("Tags.model", "is required"), ("Tags.phase", "is required")],
            id="keys have a case",
        ),
    ],
)
def test_required_tags(given: dict[str, str], expected: list[tuple[str, str]]) -> None:
    wanted = {"model": {"pattern": "[a-z0-9-]+"}, "phase": {"one_of": ["pretrain", "finetune"]}}
    assert found(body(Tags=tags(**given)), required_tags={"tags": wanted}) == expected


def test_a_job_without_tags_lacks_all_of_them() -> None:
    assert fields(body(Tags=None), required_tags=["cost center", "owner"]) == [
        'Tags["cost center"]',
        "Tags.owner",
    ]


def test_names_begin_as_they_have_to() -> None:
    assert fields(body(TrainingJobName="vision-a"), name_prefix=["speech-", "vision-"]) == []
    assert fields(body(TrainingJobName="my-vision-a"), name_prefix=["vision-"]) == ["TrainingJobName"]


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        pytest.param(resources(InstanceType=P5, InstanceCount=1), [], id="a listed type"),
        pytest.param(resources(InstanceType="ml.g5.xlarge", InstanceCount=1), [], id="a glob"),
        pytest.param(
            resources(InstanceType="ml.p5e.48xlarge", InstanceCount=1),
            ["ResourceConfig.InstanceType"],
            id="another type",
        ),
        pytest.param(
            resources(InstanceType="ml.g5e.xlarge", InstanceCount=1),
            ["ResourceConfig.InstanceType"],
            id="a family that begins alike",
        ),
        pytest.param(
            groups((P5, 1), ("ml.m5.large", 1)),
            ["ResourceConfig.InstanceGroups[1].InstanceType"],
            id="each group counts",
        ),
        pytest.param(
            preferences((P5, 1), ("ml.m5.large", 1)),
            ["ResourceConfig.InstancePreferences[1].InstanceType"],
            id="each preference counts",
        ),
        pytest.param(
            alternatives("ml.g5.xlarge=1 ml.m5.large=1:spot"), ["Tags[0].Value"], id="each alternative counts"
        ),
        pytest.param(
            alternatives(f"{P5}=1", ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1}),
            [],
            id="with alternatives what ResourceConfig says is never started",
        ),
    ],
)
def test_instance_types(request_body: dict[str, Any], expected: list[str]) -> None:
    assert fields(request_body, instance_types=[P5, "ml.g5.*"]) == expected


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        pytest.param(resources(InstanceType=P5, InstanceCount=4), [], id="as many as allowed"),
        pytest.param(
            resources(InstanceType=P5, InstanceCount=5),
            [("ResourceConfig.InstanceCount", "asks for 5 instances")],
            id="one more",
        ),
        pytest.param(
            groups((P5, 2), (G5, 3)),
            [("ResourceConfig.InstanceGroups", "asks for 5 instances")],
            id="groups run together",
        ),
        pytest.param(
            preferences((P5, 4), (G5, 6)),
            [("ResourceConfig.InstancePreferences[1].InstanceCount", "asks for 6 instances")],
            id="preferences do not",
        ),
        pytest.param(
            resources(InstanceCount=6, InstancePreferences=[{"InstanceType": P5}, {"InstanceType": G5}]),
            [("ResourceConfig.InstanceCount", "asks for 6 instances")],
            id="one count for all preferences is told once",
        ),
        pytest.param(
            alternatives(f"{P5}=1 {G5}=6"), [("Tags[0].Value", "asks for 6 instances")], id="alternatives"
        ),
    ],
)
def test_max_instances(request_body: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert found(request_body, max_instances=4) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(7200, []), (7201, ["StoppingCondition.MaxRuntimeInSeconds"])]
)
def test_max_runtime(seconds: int, expected: list[str]) -> None:
    request = body(StoppingCondition={"MaxRuntimeInSeconds": seconds})
    assert fields(request, max_runtime="2h") == expected


def test_a_job_that_does_not_say_how_long_it_runs_may_run_a_day() -> None:
    request = body(StoppingCondition=None)
    assert fields(request, max_runtime="24h") == []
    assert fields(request, max_runtime="23h") == ["StoppingCondition.MaxRuntimeInSeconds"]


@pytest.mark.parametrize(
    ("request_body", "message"),
    [
        pytest.param(resources(InstanceType=G5, InstanceCount=1), None, id="as much as allowed"),
        pytest.param(
            resources(InstanceType=G5, InstanceCount=2), "costs up to $20.00 on 2 ml.g5.12xlarge", id="more"
        ),
        pytest.param(
            groups((G5, 1), (P5, 1)),
            "costs up to $110.00 on 1 ml.g5.12xlarge and 1 ml.p5.48xlarge",
            id="all groups together",
        ),
        pytest.param(
            preferences((G5, 1), (P5, 1)), "costs up to $100.00 on 1 ml.p5.48xlarge", id="the dearest"
        ),
        pytest.param(
            alternatives(f"{G5}=1 {G5}=3:spot"),
            "costs up to $30.00 on 3 ml.g5.12xlarge",
            id="spot as if it were on-demand",
        ),
    ],
)
def test_max_estimated_cost(request_body: dict[str, Any], message: str | None) -> None:
    policy = parse_policy({"prices": {G5: 10, P5: 100}, "rules": {"max_estimated_cost_usd": 10}})
    violations = check(request_body, team="vision", policy=policy)
    expected = [] if message is None else [("StoppingCondition.MaxRuntimeInSeconds", message)]
    assert [(one.field, one.message) for one in violations] == expected


def test_a_type_without_a_price_is_told_apart_and_does_not_hide_what_is_too_dear() -> None:
    policy = parse_policy({"prices": {P5: 100}, "rules": {"max_estimated_cost_usd": 10}})
    violations = check(preferences((P5, 1), ("ml.p6-b300.48xlarge", 1)), team="a", policy=policy)
    assert [(one.field, one.message) for one in violations] == [
        (
            "ResourceConfig.InstancePreferences[1].InstanceType",
            "has no price, so what the job may cost is unknown",
        ),
        ("StoppingCondition.MaxRuntimeInSeconds", "costs up to $100.00 on 1 ml.p5.48xlarge"),
    ]


@pytest.mark.parametrize(
    ("request_body", "expected"),
    [
        pytest.param(body(), [], id="on-demand"),
        pytest.param(spot(), ["CheckpointConfig.S3Uri"], id="spot"),
        pytest.param(spot() | {"CheckpointConfig": {"S3Uri": "s3://b/c"}}, [], id="spot with checkpoints"),
        pytest.param(
            alternatives(f"{P5}=1 {G5}=1:spot"), ["CheckpointConfig.S3Uri"], id="an alternative on spot"
        ),
    ],
)
def test_spot_needs_checkpoint(request_body: dict[str, Any], expected: list[str]) -> None:
    assert fields(request_body, spot_needs_checkpoint=True) == expected


@pytest.mark.parametrize(
    ("network", "expected"),
    [(None, ["VpcConfig"]), ({"Subnets": [], "SecurityGroupIds": []}, ["VpcConfig"]), (NETWORK, [])],
)
def test_vpc_required(network: dict[str, list[str]] | None, expected: list[str]) -> None:
    assert fields(body(VpcConfig=network), vpc_required=True) == expected


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ("network_isolation", "EnableNetworkIsolation"),
        ("traffic_encryption", "EnableInterContainerTrafficEncryption"),
    ],
)
def test_switches_that_have_to_be_on(rule: str, field: str) -> None:
    assert fields(body(), **{rule: True}) == [field]
    assert fields(body(**{field: False}), **{rule: True}) == [field]
    assert fields(body(**{field: True}), **{rule: True}) == []


@pytest.mark.parametrize(
    ("count", "subnets", "is_against"),
    [
        pytest.param(1, [], False, id="one instance"),
        pytest.param(1, ["a", "b"], False, id="one instance, wherever it is"),
        pytest.param(2, ["a"], False, id="one subnet"),
        pytest.param(2, ["a", "a"], False, id="the same one twice"),
        pytest.param(2, ["a", "b"], True, id="two subnets"),
        pytest.param(2, [], True, id="none: SageMaker chooses"),
    ],
)
def test_single_az_when_distributed(count: int, subnets: list[str], *, is_against: bool) -> None:
    request = resources(InstanceType=P5, InstanceCount=count) | {"VpcConfig": {"Subnets": subnets}}
    expected = ["VpcConfig.Subnets"] if is_against else []
    assert fields(request, single_az_when_distributed=True) == expected


def test_groups_are_distributed_and_an_alternative_may_name_its_subnet() -> None:
    two = {"VpcConfig": {"Subnets": ["subnet-1", "subnet-2"], "SecurityGroupIds": ["sg-1"]}}
    assert fields(groups((P5, 1), (G5, 1)) | two, single_az_when_distributed=True) == ["VpcConfig.Subnets"]
    assert fields(alternatives(f"{P5}=2@subnet-1") | two, single_az_when_distributed=True) == []
    assert fields(alternatives(f"{P5}=2@subnet-1 {P5}=2") | two, single_az_when_distributed=True) == [
        "VpcConfig.Subnets"
    ]


@pytest.mark.parametrize(
    "arn",
    [
        "arn:aws:iam::999988887777:role/vision-training",
        "arn:aws-cn:iam::111122223333:role/vision-training",
        "arn:aws:iam::111122223333:role/path/vision-training",
        "arn:aws:iam::111122223333:role/x/../vision-training",
        "arn:aws:iam::111122223333:role/Vision-Training",
        "arn:aws:iam::111122223333:role/vision-training2",
        f"{ROLE}\n",
        f" {ROLE}",
        None,
    ],
)
def test_another_role_is_against_the_rule(arn: str | None) -> None:
    assert fields(body(RoleArn=arn), roles=[ROLE]) == ["RoleArn"]
    assert fields(body(), roles=[ROLE]) == []


def test_images_are_those_of_the_job_and_of_its_debugger() -> None:
    assert fields(image(f"{IMAGE}:2.8"), images=[IMAGE]) == []
    assert fields(image(f"{REGISTRY}.evil.com/pytorch-training"), images=[IMAGE]) == [
        "AlgorithmSpecification.TrainingImage"
    ]
    rule = {"RuleConfigurationName": "r", "RuleEvaluatorImage": "evil.com/x"}
    request = image(IMAGE) | {"DebugRuleConfigurations": [rule], "ProfilerRuleConfigurations": [rule, rule]}
    assert fields(request, images=[IMAGE]) == [
        "DebugRuleConfigurations[0].RuleEvaluatorImage",
        "ProfilerRuleConfigurations[0].RuleEvaluatorImage",
        "ProfilerRuleConfigurations[1].RuleEvaluatorImage",
    ]


def test_code_that_is_no_image_of_the_list_is_against_the_rule() -> None:
    algorithm = {"AlgorithmName": "market-place", "TrainingInputMode": "File"}
    assert fields(body(AlgorithmSpecification=algorithm), images=[IMAGE]) == [
        "AlgorithmSpecification.AlgorithmName"
    ]
    assert fields(body(AlgorithmSpecification=None), images=[IMAGE]) == [
        "AlgorithmSpecification.TrainingImage"
    ]
    provider = "arn:aws:lambda:us-east-1:111122223333:function:credentials"
    login = {"TrainingRepositoryAuthConfig": {"TrainingRepositoryCredentialsProviderArn": provider}}
    own = {"TrainingImage": IMAGE, "TrainingInputMode": "File", "TrainingImageConfig": login}
    (field,) = fields(body(AlgorithmSpecification=own), images=[IMAGE])
    assert field.split(".")[1:] == ["TrainingImageConfig", *login, *login["TrainingRepositoryAuthConfig"]]


EVERY_PLACE = body(
    OutputDataConfig={"S3OutputPath": "s3://b/o"},
    InputDataConfig=[channel("s3://b/i/")],
    CheckpointConfig={"S3Uri": "s3://b/c"},
    DebugHookConfig={"S3OutputPath": "s3://b/d"},
    DebugRuleConfigurations=[
        {"RuleConfigurationName": "r", "RuleEvaluatorImage": "i", "S3OutputPath": "s3://b/r"}
    ],
    ProfilerConfig={"S3OutputPath": "s3://b/p"},
    ProfilerRuleConfigurations=[
        {"RuleConfigurationName": "r", "RuleEvaluatorImage": "i", "S3OutputPath": "s3://b/q"}
    ],
    TensorBoardOutputConfig={"S3OutputPath": "s3://b/t"},
)


def test_every_s3_field_of_the_request_is_looked_at() -> None:
    assert fields(EVERY_PLACE, s3_prefixes=["s3://b/"]) == []
    assert sorted(fields(EVERY_PLACE, s3_prefixes=["s3://other/"])) == [
        "CheckpointConfig.S3Uri",
        "DebugHookConfig.S3OutputPath",
        "DebugRuleConfigurations[0].S3OutputPath",
        "InputDataConfig[0].DataSource.S3DataSource.S3Uri",
        "OutputDataConfig.S3OutputPath",
        "ProfilerConfig.S3OutputPath",
        "ProfilerRuleConfigurations[0].S3OutputPath",
        "TensorBoardOutputConfig.S3OutputPath",
    ]


@pytest.mark.parametrize(
    ("uri", "kind", "is_against"),
    [
        pytest.param("s3://b/team-a/x", "S3Prefix", False, id="inside"),
        pytest.param("s3://b/team-a/", "S3Prefix", False, id="all of it"),
        pytest.param("s3://b/team-a", "S3Prefix", True, id="a key prefix is that of team-ab too"),
        pytest.param("s3://b/team-a", "ManifestFile", True, id="a manifest names what nobody sees"),
        pytest.param("s3://b/team-ab/x", "S3Prefix", True, id="a neighbour"),
        pytest.param("s3://b/team-a/../team-b/x", "S3Prefix", True, id="out and in again"),
        pytest.param("https://b.s3.amazonaws.com/team-a/x", "S3Prefix", True, id="another scheme"),
    ],
)
def test_inputs_lie_in_a_place_that_is_allowed(uri: str, kind: str, *, is_against: bool) -> None:
    request = body(OutputDataConfig=None, InputDataConfig=[channel(uri, kind)])
    expected = ["InputDataConfig[0].DataSource.S3DataSource.S3Uri"] if is_against else []
    assert fields(request, s3_prefixes=["s3://b/team-a"]) == expected


@pytest.mark.parametrize(
    ("key", "is_allowed"),
    [
        (KEY, True),
        ("arn:aws:kms:us-east-1:111122223333:key/mrk-0a", True),
        ("arn:aws:kms:eu-west-1:111122223333:key/0a", False),
        ("arn:aws:kms:us-east-1:999988887777:key/0a", False),
        ("arn:aws-cn:kms:us-east-1:111122223333:key/0a", False),
    ],
)
def test_kms_keys(key: str, *, is_allowed: bool) -> None:
    request = body(OutputDataConfig={"S3OutputPath": "s3://b", "KmsKeyId": key})
    expected = [] if is_allowed else ["OutputDataConfig.KmsKeyId"]
    assert fields(request, kms_keys=["arn:aws:kms:us-east-1:111122223333:key/*"]) == expected


@pytest.mark.parametrize(
    "key", ["0a1b2c3d", "alias/mine", "arn:aws:kms:us-east-1:111122223333:alias/mine", "", "a:b:c:d:e:key/x"]
)
def test_a_key_whose_arn_is_not_given_is_not_known(key: str) -> None:
    request = resources(InstanceType=P5, InstanceCount=1, VolumeKmsKeyId=key)
    (violation,) = check(request, team="a", policy=parse_policy({"rules": {"kms_keys": [KEY]}}))
    assert violation.field == "ResourceConfig.VolumeKmsKeyId"
    assert violation.hint.startswith("give the key ARN")


def test_machines_and_shells_beside_the_job() -> None:
    rule = {"RuleConfigurationName": "r", "RuleEvaluatorImage": "i", "InstanceType": "ml.m5.large"}
    request = body(
        DebugRuleConfigurations=[rule],
        ProfilerRuleConfigurations=[{}, rule],
        RemoteDebugConfig={"EnableRemoteDebug": True},
    )
    assert fields(request, debugger_instances=True, remote_debug=True) == [
        "DebugRuleConfigurations[0].InstanceType",
        "ProfilerRuleConfigurations[1].InstanceType",
        "RemoteDebugConfig.EnableRemoteDebug",
    ]
    assert fields(body(RemoteDebugConfig={"EnableRemoteDebug": False}), remote_debug=True) == []


BIG = {"preset": "llama2-70b", "batch_size": "8", "activation_checkpointing": "true"}


def test_a_model_that_is_too_large_is_told_by_how_much_and_what_would_do() -> None:
    request = resources(InstanceType=P5, InstanceCount=1) | {"HyperParameters": BIG}
    (violation,) = check(request, team="a", policy=parse_policy({"rules": {"must_fit": True}}))
    assert violation == Violation(
        rule="must_fit",
        field="ResourceConfig.InstanceType",
        message="needs 144.9 GiB on each of 8 GPUs, 71.3 GiB more than ml.p5.48xlarge has",
        hint="3 instances with batch_size 24 would do",
    )


@pytest.mark.parametrize(
    "request_body",
    [
        pytest.param(resources(InstanceType=P5, InstanceCount=16), id="it fits"),
        pytest.param(resources(InstanceType="ml.m5.large", InstanceCount=1), id="no GPUs"),
        pytest.param(resources(InstanceType="ml.trn1.32xlarge", InstanceCount=1), id="other accelerators"),
        pytest.param(resources(InstanceType="ml.p9.large", InstanceCount=1), id="an unknown type"),
    ],
)
def test_what_fits_or_cannot_be_judged_is_no_violation(request_body: dict[str, Any]) -> None:
    assert fields(request_body | {"HyperParameters": BIG}, must_fit=True) == []


def test_only_models_of_the_training_program_are_judged() -> None:
    request = resources(InstanceType=P5, InstanceCount=1)
    assert fields(request | {"HyperParameters": {"preset": "mine"}}, must_fit=True) == []
    assert fields(request | {"HyperParameters": {}}, must_fit=True) == []


def test_every_form_has_to_fit() -> None:
    request = alternatives(f"{P5}=16 {G5}=1", HyperParameters=BIG)
    assert fields(request, must_fit=True) == ["Tags[0].Value"]


def test_rules_of_the_policy_and_of_the_team_both_apply() -> None:
    policy = parse_policy(
        {
            "rules": {"max_instances": 4, "vpc_required": {"mode": "audit"}},
            "teams": [
                {
                    "name": "vision",
                    "roles": ["arn:aws:iam::111122223333:role/other"],
                    "images": [IMAGE],
                    "s3_prefixes": ["s3://elsewhere/"],
                    "rules": {"max_instances": {"mode": "audit", "value": 2}},
                },
                {"name": "speech", "rules": {"max_instances": 1}},
            ],
        }
    )
    request = resources(InstanceType=P5, InstanceCount=5)
    of_vision = [
        (one.rule, one.field, one.mode.value) for one in check(request, team="vision", policy=policy)
    ]
    assert of_vision == [
        ("max_instances", "ResourceConfig.InstanceCount", "enforce"),
        ("vpc_required", "VpcConfig", "audit"),
        ("teams.vision.rules.max_instances", "ResourceConfig.InstanceCount", "audit"),
        ("teams.vision.roles", "RoleArn", "enforce"),
        ("teams.vision.images", "AlgorithmSpecification.TrainingImage", "enforce"),
        ("teams.vision.s3_prefixes", "OutputDataConfig.S3OutputPath", "enforce"),
    ]
    assert [one.rule for one in check(request, team="nobody", policy=policy)] == [
        "max_instances",
        "vpc_required",
    ]


ALL_RULES = {
    "required_tags": ["owner"],
    "instance_types": [P5],
    "max_instances": 1,
    "max_runtime": "1h",
    "max_estimated_cost_usd": 1,
    "spot_needs_checkpoint": True,
    "vpc_required": True,
    "network_isolation": True,
    "traffic_encryption": True,
    "single_az_when_distributed": True,
    "roles": [ROLE],
    "images": [IMAGE],
    "s3_prefixes": ["s3://b/"],
    "kms_keys": [KEY],
    "debugger_instances": True,
    "remote_debug": True,
    "name_prefix": ["vision-"],
    "must_fit": True,
}
ODD: tuple[Any, ...] = (None, True, 5, "x", [], {}, [None], [[]], ["x"], [{}], {"x": None})


@pytest.mark.parametrize("name", [*EVERY_PLACE, "VpcConfig", "RemoteDebugConfig"])
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_a_request_that_nobody_checked_is_judged_without_a_crash(name: str, value: object) -> None:
    policy = parse_policy({"rules": ALL_RULES})
    assert check({**EVERY_PLACE, name: value}, team="a", policy=policy)
