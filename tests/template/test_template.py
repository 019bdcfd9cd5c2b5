"""The expanded template against the rules of the house; the rules are in the modules beside this one."""

import pytest

from tests.template import stack
from tests.template.api import routes
from tests.template.checks import CHECKS, Check
from tests.template.functions import FUNCTIONS
from tests.template.rights import RIGHTS
from tests.template.stack import ROOT, of_type


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_nothing_is(check: Check):
    assert list(check(stack.resources())) == []


def test_only_schedule_may_change_anything_outside_the_table():
    levers = {
        "cloudwatch:DeleteAlarms",
        "cloudwatch:PutCompositeAlarm",
        "cloudwatch:PutMetricAlarm",
        "events:PutEvents",
        "iam:PassRole",
        "sagemaker:AddTags",
        "sagemaker:CreateTrainingJob",
        "sagemaker:StopTrainingJob",
        "sagemaker:UpdateTrainingJob",
        "sns:Publish",
    }
    may = {role: {action for action, _, _ in grants} & levers for role, grants in RIGHTS.items()}
    assert may.pop("ScheduleFunctionRole") == levers
    assert set().union(*may.values()) == set()


def test_nobody_but_the_schedule_may_invoke_a_function():
    invokers = {
        role
        for role, grants in RIGHTS.items()
        if any(action.startswith("lambda:") for action, _, _ in grants)
    }
    assert invokers == {"ReconcileScheduleRole"}


def test_every_function_has_a_folder_and_every_folder_a_function():
    folders = {path.parent.name for path in ROOT.glob("functions/*/app.py")}
    assert folders == {function.folder for function in FUNCTIONS.values()}
    sources = {
        name: one["Properties"]["CodeUri"]
        for name, one in stack.source()["Resources"].items()
        if one["Type"] == "AWS::Serverless::Function"
    }
    assert sources == {name: f"functions/{function.folder}/" for name, function in FUNCTIONS.items()}


def test_functions_are_pure_source_and_the_layer_is_made_by_its_makefile():
    source = stack.source()["Resources"]
    assert source["Layer"]["Metadata"] == {"BuildMethod": "makefile", "BuildArchitecture": "arm64"}
    assert [source[name]["Metadata"] for name in FUNCTIONS] == [{"SkipBuild": True}] * len(FUNCTIONS)


def test_no_allowed_principal_is_a_wildcard():
    def allowed(value):
        if isinstance(value, list):
            for one in value:
                yield from allowed(one)
        elif isinstance(value, dict):
            if value.get("Effect") == "Allow" and "Principal" in value:
                yield value["Principal"]
            for one in value.values():
                yield from allowed(one)

    principals = list(allowed(stack.resources()))
    assert len(principals) > 10
    assert not [one for one in principals if "*" in str(one)]


def test_a_changed_list_of_callers_is_deployed_and_an_unchanged_one_is_not():
    def deployment(**changed):
        return list(of_type(stack.resources(**changed), "AWS::ApiGateway::Deployment"))

    assert deployment(RetentionDays=30) == deployment()
    assert deployment(CallerPrincipalArns="arn:aws:iam::111122223333:role/other") != deployment()
    assert deployment(CallerAccounts="999988887777") != deployment()
    assert deployment(VpcEndpointIds="vpce-9z") != deployment()


def test_the_outputs_name_what_other_stacks_and_people_need():
    assert stack.source()["Outputs"].keys() == {
        "AlarmTopicArn",
        "ApiFunctionRoleName",
        "ApiUrl",
        "DoorbellQueueUrl",
        "KeyArn",
        "MailTopicArn",
        "OnIdleAlarmFunctionRoleName",
        "OnTrainingJobEventFunctionRoleName",
        "QueueWidgetFunctionArn",
        "QueueWidgetFunctionRoleName",
        "ReconcileFunctionRoleName",
        "ScheduleFunctionRoleName",
        "TableName",
    }


def test_every_route_leads_to_the_one_api_function():
    assert len(routes(stack.resources())) == len(
        [
            one
            for one in of_type(stack.resources(), "AWS::Lambda::Permission").values()
            if "api" in one["Principal"]
        ]
    )
