"""Wrong parameters are refused before anything is deployed; empty ones still make valid policies."""

import json
import re

import pytest
from trainmaster_client.preflight.account_reading import FUNCTIONS
from trainmaster_client.preflight.parameter_checks import IN_SCHEDULE_POLICY, SCHEDULE_POLICY_CHARACTERS

from tests.template import stack
from tests.template.rights import grants

ROLE = "arn:aws:iam::111122223333:role"
KEY = "arn:aws:kms:eu-west-1:111122223333:key"


def _accepts(parameter: str, value: str) -> bool:
    """As CloudFormation: each value of a list must match the whole pattern."""
    definition = stack.source()["Parameters"][parameter]
    return all(re.fullmatch(definition["AllowedPattern"], one) for one in value.split(","))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("VpcEndpointIds", "vpce-0a1b2c3d4e5f67890"),
        ("VpcEndpointIds", "vpce-local"),
        ("VpcEndpointIds", "vpce-1,vpce-2"),
        ("CallerPrincipalArns", f"{ROLE}/scientist,arn:aws:iam::444455556666:user/people/ada@example.org"),
        (
            "CallerPrincipalArns",
            f"{ROLE}/aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Science_0123456789abcdef",
        ),
        ("CallerPrincipalArns", "arn:aws-us-gov:iam::111122223333:role/scientist"),
        ("CallerAccounts", "111122223333,444455556666"),
        ("AdminPrincipalArns", f"{ROLE}/ops-*"),
        ("TrainingRoleArns", f"{ROLE}/ml/*-train,{ROLE}/train"),
        ("TrainingRoleArns", ""),
        ("LauncherRoleArns", ""),
        ("LauncherRoleArns", f"{ROLE}/ml/launcher-red,{ROLE}/launcher-blue"),
        ("LauncherRoleArns", f"{ROLE}/launcher-*,{ROLE}/ml/*-launcher"),
        ("CheckpointBuckets", ""),
        ("CheckpointBuckets", "arn:aws:s3:::one,arn:aws-cn:s3:::two.three"),
        ("CheckpointKmsKeyArns", ""),
        ("CheckpointKmsKeyArns", f"{KEY}/1234abcd-12ab-34cd-56ef-1234567890ab"),
        ("TrainingKmsKeyArns", ""),
        ("TrainingKmsKeyArns", f"{KEY}/mrk-1234abcd12ab34cd56ef1234567890ab,{KEY}/1234abcd"),
        ("ApiUrlParameterName", "/trainmaster/api-url"),
    ],
)
def test_accepted(parameter, value):
    assert _accepts(parameter, value)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("VpcEndpointIds", ""),
        ("VpcEndpointIds", "vpc-0a1b2c3d"),
        ("CallerPrincipalArns", ""),
        ("CallerPrincipalArns", "*"),
        ("CallerPrincipalArns", f"{ROLE}/*"),
        ("CallerPrincipalArns", f"{ROLE}/scientist-*"),
        ("CallerPrincipalArns", f"{ROLE}/scientist,*"),
        ("CallerPrincipalArns", "arn:aws:iam::111122223333:root"),
        ("CallerPrincipalArns", "111122223333"),
        ("CallerPrincipalArns", "arn:aws:sts::111122223333:assumed-role/scientist/ada"),
        ("CallerAccounts", "*"),
        ("CallerAccounts", "11112222333"),
        ("AdminPrincipalArns", ""),
        ("AdminPrincipalArns", f"{ROLE}/*"),
        ("AdminPrincipalArns", "arn:aws:iam::*:role/admin"),
        ("AdminPrincipalArns", f"{ROLE}/*/admin"),
        ("TrainingRoleArns", "*"),
        ("TrainingRoleArns", f"{ROLE}/*"),
        ("TrainingRoleArns", f"{ROLE}/ml/*"),
        ("TrainingRoleArns", "arn:aws:iam::111122223333:user/train"),
        ("LauncherRoleArns", "*"),
        ("LauncherRoleArns", f"{ROLE}/*"),
        ("LauncherRoleArns", f"{ROLE}/ml/*"),
        ("LauncherRoleArns", "arn:aws:iam::111122223333:user/red"),
        ("CheckpointBuckets", "one"),
        ("CheckpointBuckets", "arn:aws:s3:::*"),
        ("CheckpointBuckets", "arn:aws:s3:::one/prefix"),
        ("CheckpointKmsKeyArns", f"{KEY}/*"),
        ("TrainingKmsKeyArns", "*"),
        ("TrainingKmsKeyArns", f"{KEY}/*"),
        ("TrainingKmsKeyArns", "1234abcd-12ab-34cd-56ef-1234567890ab"),
        ("TrainingKmsKeyArns", "arn:aws:kms:eu-west-1:111122223333:alias/volumes"),
        ("ApiUrlParameterName", "api-url"),
    ],
)
def test_refused(parameter, value):
    assert not _accepts(parameter, value)


def test_only_what_nobody_can_guess_has_no_default():
    definitions = stack.source()["Parameters"]
    assert {name for name, one in definitions.items() if "Default" not in one} == {
        "AdminPrincipalArns",
        "CallerAccounts",
        "CallerPrincipalArns",
        "TrainingRoleArns",
        "VpcEndpointIds",
    }
    assert all(one.get("Description") for one in definitions.values())


@pytest.mark.parametrize(("value", "protected"), [("true", True), ("false", False)])
def test_the_table_is_protected_unless_a_first_deployment_says_otherwise(value, protected):
    assert stack.source()["Parameters"]["ProtectTable"]["Default"] == "true"
    table = stack.resources(ProtectTable=value)["Table"]["Properties"]
    assert table["DeletionProtectionEnabled"] is protected


def test_preflight_knows_the_log_groups_of_the_stack():
    groups = stack.of_type(stack.resources(), "AWS::Logs::LogGroup").values()
    assert {one["LogGroupName"] for one in groups} == {
        "/aws/apigateway/prod",
        *(f"/aws/lambda/prod-{name}" for name in FUNCTIONS),
    }


def test_preflight_knows_how_long_the_policy_of_schedule_is_without_any_arn():
    """Its estimate is above the real length, and by little: else it warns of nothing, or too late."""
    none = dict.fromkeys(IN_SCHEDULE_POLICY, "")
    role = stack.resources(**none)["ScheduleFunctionRole"]["Properties"]
    characters = sum(
        len(json.dumps(one["PolicyDocument"], separators=(",", ":"))) for one in role["Policies"]
    )
    assert 0 <= SCHEDULE_POLICY_CHARACTERS - characters < 1_000, characters


def test_each_arn_stands_in_the_policy_of_schedule_as_often_as_preflight_believes():
    for name, times in IN_SCHEDULE_POLICY.items():
        role = stack.resources()["ScheduleFunctionRole"]["Properties"]
        for arn in stack.PARAMETERS[name]:
            assert json.dumps(role).count(f'"{arn}"') == times, name


def test_without_checkpoint_buckets_reconcile_reads_no_bucket():
    role = stack.resources(CheckpointBuckets="")["ReconcileFunctionRole"]["Properties"]
    assert not [grant for grant in grants(role) if grant[0].startswith("s3:")]


@pytest.mark.parametrize("parameter", ["CheckpointKmsKeyArns", "TrainingKmsKeyArns"])
def test_a_customer_s_keys_are_nobody_s_unless_the_stack_names_them(parameter):
    assert stack.source()["Parameters"][parameter]["Default"] == ""

    def rights(**changed):
        roles = stack.of_type(stack.resources(**changed), "AWS::IAM::Role").values()
        return {grant for role in roles for grant in grants(role)}

    gone = rights() - rights(**{parameter: ""})
    assert {grant[1] for grant in gone} == set(stack.PARAMETERS[parameter])
    assert not [grant for grant in rights(TrainingKmsKeyArns="") if grant[0] == "kms:CreateGrant"]


@pytest.mark.parametrize(
    ("parameter", "actions"),
    [("TrainingRoleArns", {"iam:PassRole"}), ("LauncherRoleArns", {"sts:AssumeRole", "sts:TagSession"})],
)
def test_the_stack_passes_and_assumes_no_role_that_it_does_not_name(parameter, actions):
    def rights(**changed):
        return set(grants(stack.resources(**changed)["ScheduleFunctionRole"]["Properties"]))

    gone = rights() - rights(**{parameter: ""})
    assert {grant[0] for grant in gone} == actions
    assert {grant[1] for grant in gone} == set(stack.PARAMETERS[parameter])
    assert stack.source()["Parameters"]["LauncherRoleArns"]["Default"] == ""


def test_unmanaged_jobs_can_be_stopped_only_where_the_stack_says_so():
    def may_stop(**changed):
        role = stack.resources(**changed)["ScheduleFunctionRole"]["Properties"]
        return [grant[2] for grant in grants(role) if grant[0] == "sagemaker:StopTrainingJob"]

    own = '{"StringEquals": {"aws:ResourceTag/trainmaster:stack": "prod"}}'
    assert stack.source()["Parameters"]["StopUnmanagedJobs"]["Default"] == "false"
    assert may_stop(StopUnmanagedJobs="false") == [own]
    assert may_stop(StopUnmanagedJobs="true") == [
        own,
        '{"Null": {"aws:ResourceTag/trainmaster:stack": "true"}}',  # another stack's stay out of reach
    ]


def test_the_log_role_of_the_region_is_left_alone_unless_asked_for():
    assert stack.source()["Parameters"]["CreateApiGatewayLogRole"]["Default"] == "false"
    with_it, without = stack.resources(), stack.resources(CreateApiGatewayLogRole="false")
    assert with_it.keys() - without.keys() == {"ApiGatewayAccount", "ApiGatewayLogRole"}


def test_a_long_wait_is_told_only_where_the_stack_says_how_long():
    assert stack.source()["Parameters"]["OldestWaitAlarmSeconds"]["Default"] == 0
    with_it, without = stack.resources(), stack.resources(OldestWaitAlarmSeconds=0)
    assert with_it.keys() - without.keys() == {"OldestWaitAlarm"}


def test_two_stacks_share_no_name_but_the_one_that_is_a_parameter():
    def names(value):
        for key, one in value.items():
            if key in {
                "AliasName",
                "AlarmName",
                "DashboardName",
                "LogGroupName",
                "QueueName",
                "RoleName",
                "TopicName",
                "TableName",
            }:
                yield one
            elif isinstance(one, dict):
                yield from names(one)

    fixed = list(names(stack.resources()))
    assert len(fixed) > 20
    assert not [one for one in fixed if "prod" not in one]
    assert stack.source()["Parameters"]["ApiUrlParameterName"]["Default"] == "/trainmaster/api-url"


def test_every_parameter_says_in_a_sentence_what_it_is():
    for name, definition in stack.source()["Parameters"].items():
        assert re.fullmatch(r"[A-Z].{20,}\.", definition["Description"]), name


def test_samconfig_shows_how_to_give_every_parameter_that_has_no_default():
    needed = {name for name, one in stack.source()["Parameters"].items() if "Default" not in one}
    shown = re.findall(r'^#   "(\w+)=', (stack.ROOT / "samconfig.toml").read_text(), re.MULTILINE)
    assert needed <= set(shown) <= set(stack.source()["Parameters"])


def test_concurrency_is_reserved_only_where_the_stack_says_how_much():
    def reserved(**changed):
        functions = stack.of_type(stack.resources(**changed), "AWS::Lambda::Function")
        return {
            name: function["ReservedConcurrentExecutions"]
            for name, function in functions.items()
            if "ReservedConcurrentExecutions" in function
        }

    definitions = stack.source()["Parameters"]
    both = ("ApiReservedConcurrency", "ScheduleReservedConcurrency")
    assert [definitions[name]["Default"] for name in both] == [0, 0]
    assert reserved(ApiReservedConcurrency=0, ScheduleReservedConcurrency=0) == {}
    assert reserved(ApiReservedConcurrency=7, ScheduleReservedConcurrency=0) == {"ApiFunction": 7}
    assert reserved(ApiReservedConcurrency=0, ScheduleReservedConcurrency=4) == {"ScheduleFunction": 4}


def test_the_widget_names_nobody_unless_the_stack_says_so():
    assert stack.source()["Parameters"]["WidgetShowsNames"]["Default"] == "false"

    def told(**changed):
        functions = stack.of_type(stack.resources(**changed), "AWS::Lambda::Function")
        return {
            one["Environment"]["Variables"]["TRAINMASTER_WIDGET_SHOWS_NAMES"] for one in functions.values()
        }

    assert (told(), told(WidgetShowsNames="true")) == ({"false"}, {"true"})


def test_the_throttle_of_the_api_is_a_parameter_that_its_function_knows():
    resources = stack.resources(ApiRequestsPerSecond=40, ApiBurst=60)
    (stage,) = stack.of_type(resources, "AWS::ApiGateway::Stage").values()
    (settings,) = stage["MethodSettings"]
    assert (settings["ThrottlingRateLimit"], settings["ThrottlingBurstLimit"]) == (40, 60)
    functions = stack.of_type(resources, "AWS::Lambda::Function")
    throttles = {
        name: {key: value for key, value in one["Environment"]["Variables"].items() if "_API_" in key}
        for name, one in functions.items()
    }
    assert throttles.pop("ApiFunction") == {
        "TRAINMASTER_API_REQUESTS_PER_SECOND": 40,
        "TRAINMASTER_API_BURST": 60,
    }
    assert all(one == {} for one in throttles.values())
