"""The control API: clock, errors, event faults, training jobs; and what it says against bad bodies."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.integration.local.running_twin import FIXTURE, RunningTwin, running_twin

WINDOW = {"from": "2026-12-01T08:00:00Z", "to": "2026-12-01T12:00:00Z"}
PLAN = {
    "name": "spring",
    "instance_type": "ml.p5.48xlarge",
    "instances": 2,
    "windows": [WINDOW],
    "fee_usd": 800,
}


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningTwin]:
    folder = tmp_path_factory.mktemp("twin")
    with running_twin(folder, template=FIXTURE, manual=True) as twin:
        yield twin


def test_the_clock_moves_by_what_it_is_told(twin: RunningTwin) -> None:
    before = datetime.fromisoformat(twin.advance(0))
    after = datetime.fromisoformat(twin.advance(90.5))
    assert after - before == timedelta(seconds=90.5)


def test_an_error_on_demand_meets_the_next_calls_alone(twin: RunningTwin) -> None:
    answer = twin.control(
        "POST", "/errors", {"operation": "ListTables", "error_code": "ThrottlingException", "times": 2}
    )
    assert answer.status == 200
    dynamodb = twin.client("dynamodb")
    for _ in range(2):
        with pytest.raises(ClientError) as caught:
            dynamodb.list_tables()
        assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert dynamodb.list_tables()["TableNames"]


def test_dropped_events_reach_nobody(twin: RunningTwin) -> None:
    assert twin.control("POST", "/events", {"drop": 1}).status == 200
    entry = {"Source": "tests", "DetailType": "t", "Detail": '{"mark": "dropped"}'}
    twin.client("events").put_events(Entries=[entry])
    assert twin.control("POST", "/events", {}).json == {"drop": 0, "duplicate": 0, "reorder": 0, "seed": 0}
    twin.client("events").put_events(Entries=[entry | {"Detail": '{"mark": "delivered"}'}])
    twin.advance(0)
    assert "dropped" not in twin.log_of("recorder")


def test_capacity_of_a_type_can_be_withheld(twin: RunningTwin) -> None:
    answer = twin.control("POST", "/capacity", {"instance_type": "ml.none.large"})
    assert (answer.status, answer.json) == (200, {"instance_type": "ml.none.large", "times": 1})


def test_a_quota_is_shown_by_service_quotas_page_by_page(twin: RunningTwin) -> None:
    quotas = twin.client("service-quotas")
    for instance_type in ("ml.a.large", "ml.b.large"):
        asked = {"instance_type": instance_type, "instances": 4}
        assert twin.control("POST", "/quota", asked).json == {**asked, "capacity_type": "on-demand"}
    assert twin.control("POST", "/quota", {**asked, "capacity_type": "spot", "instances": 9}).status == 200
    pages = quotas.get_paginator("list_service_quotas").paginate(
        ServiceCode="sagemaker", PaginationConfig={"PageSize": 2}
    )
    assert [(quota["QuotaName"], quota["Value"]) for page in pages for quota in page["Quotas"]] == [
        ("ml.a.large for training job usage", 4.0),
        ("ml.b.large for training job usage", 4.0),
        ("ml.b.large for spot training job usage", 9.0),
    ]


def test_a_capacity_type_that_is_none_is_refused(twin: RunningTwin) -> None:
    quota = {"instance_type": "ml.a.large", "capacity_type": "reserved", "instances": 1}
    answer = twin.control("POST", "/quota", quota)
    assert (answer.status, answer.json["code"]) == (400, "ValidationException")


def test_an_error_for_one_principal_meets_no_other(twin: RunningTwin) -> None:
    role = "visitor"
    visitor = twin.session_of(role, "visitor")
    who = twin.client("sts", visitor).get_caller_identity()["Arn"]
    fault = {"operation": "ListTables", "error_code": "ThrottlingException", "principal": who}
    assert twin.control("POST", "/errors", fault).json == {**fault, "times": 1}
    assert twin.client("dynamodb").list_tables()["TableNames"]
    with pytest.raises(ClientError, match="ThrottlingException"):
        twin.client("dynamodb", visitor).list_tables()
    assert twin.client("dynamodb", visitor).list_tables()["TableNames"]


def codes_of(*calls: Callable[[], object]) -> list[str | None]:
    """What each call was answered; None: it succeeded."""

    def code_of(call: Callable[[], object]) -> str | None:
        try:
            call()
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        return None

    return [code_of(call) for call in calls]


def test_errors_of_an_operation_are_replaced_and_ended(twin: RunningTwin) -> None:
    listed = twin.client("dynamodb").list_tables
    fault = {"operation": "ListTables", "error_code": "ThrottlingException", "times": 9}
    twin.control("POST", "/errors", fault)
    twin.control("POST", "/errors", {**fault, "error_code": "ResourceNotFoundException", "times": 1})
    assert codes_of(listed, listed) == ["ResourceNotFoundException", None]
    twin.control("POST", "/errors", fault)
    assert twin.control("POST", "/errors", {"operation": "ListTables", "times": 0}).status == 200
    assert codes_of(listed) == [None]
    twin.control("POST", "/errors", fault)
    assert twin.control("POST", "/errors", {"clear": True}).json == {"clear": True}
    assert codes_of(listed) == [None]


def test_a_denial_lasts_by_the_twins_clock_and_zero_ends_it(twin: RunningTwin) -> None:
    listed = twin.client("dynamodb").list_tables
    denial = {"operation": "ListTables", "seconds": 60}
    assert twin.control("POST", "/deny", denial).json == {**denial, "principal": None, "role_arn": None}
    assert codes_of(listed) == ["AccessDeniedException"]
    twin.advance(59)
    assert codes_of(listed) == ["AccessDeniedException"]
    twin.advance(1)
    assert codes_of(listed) == [None]
    twin.control("POST", "/deny", denial)
    twin.control("POST", "/deny", {"operation": "ListTables", "seconds": 0})
    assert codes_of(listed) == [None]


def test_a_denial_of_one_caller_meets_no_other(twin: RunningTwin) -> None:
    visitor = twin.session_of("denied-visitor", "visitor")
    who = twin.client("sts", visitor).get_caller_identity()["Arn"]
    twin.control("POST", "/deny", {"operation": "ListTables", "seconds": 60, "principal": who})
    both = (twin.client("dynamodb").list_tables, twin.client("dynamodb", visitor).list_tables)
    assert codes_of(*both) == [None, "AccessDeniedException"]
    twin.control("POST", "/deny", {"operation": "ListTables", "seconds": 0})
    assert codes_of(*both) == [None, None]


def test_a_denial_of_one_role_meets_calls_that_pass_it(twin: RunningTwin) -> None:
    denied = f"arn:aws:iam::{twin.ready.account_id}:role/denied"
    other = f"arn:aws:iam::{twin.ready.account_id}:role/other"
    twin.control("POST", "/deny", {"operation": "CreateTrainingJob", "seconds": 60, "role_arn": denied})
    sagemaker = twin.client("sagemaker")

    def creates(role: str) -> None:
        sagemaker.create_training_job(
            TrainingJobName="job",
            RoleArn=role,
            AlgorithmSpecification={"AlgorithmName": "x", "TrainingInputMode": "File"},
            OutputDataConfig={"S3OutputPath": "s3://bucket/out"},
            ResourceConfig={"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 1},
            StoppingCondition={"MaxRuntimeInSeconds": 60},
        )

    codes = codes_of(lambda: creates(denied), lambda: creates(other))
    assert codes[0] == "AccessDeniedException"
    assert codes[1] != "AccessDeniedException"
    twin.control("POST", "/deny", {"operation": "CreateTrainingJob", "seconds": 0})


def test_values_of_the_world_are_set_whole_and_shown(twin: RunningTwin) -> None:
    before = twin.control("GET", "/world").json
    assert before["world"]["max_instances_per_job"] is None
    assert before["killed_invocations"] == {}
    changes = {"max_instances_per_job": 3, "rates": {"DescribeTrainingJob": 1}}
    after = twin.control("POST", "/world", {"set": changes}).json
    assert after["world"] == {**before["world"], **changes}
    refused = twin.control("POST", "/world", {"set": {"read_delay_seconds": 1, "rates": {"Create": 1}}})
    assert refused.status == 400
    assert refused.json["message"].startswith("rates: Create is no operation; there are CreateTrainingJob, ")
    assert twin.control("GET", "/world").json["world"] == after["world"], "all values or none"


def test_calls_above_the_rate_are_throttled_journalled_and_counted(twin: RunningTwin) -> None:
    twin.control("POST", "/world", {"set": {"rates": {"ListTrainingJobs": 2}}})
    sagemaker, before = twin.client("sagemaker"), twin.control("GET", "/world").json["throttled"]

    def listed() -> str:
        try:
            sagemaker.list_training_jobs()
        except ClientError as error:
            return str(error.response["Error"]["Message"])
        return "listed"

    assert [listed() for _ in range(3)] == ["listed", "listed", "Rate exceeded"]
    twin.advance(0.5)
    assert [listed() for _ in range(2)] == ["listed", "Rate exceeded"]
    throttled = twin.control("GET", "/world").json["throttled"]["ListTrainingJobs"]
    assert throttled - before.get("ListTrainingJobs", 0) == 2
    calls = [one for one in twin.journal() if one.get("operation") == "ListTrainingJobs"]
    assert [(one["status"], one["error_code"]) for one in calls[-3:]] == [
        (400, "ThrottlingException"),
        (200, None),
        (400, "ThrottlingException"),
    ]
    twin.control("POST", "/world", {"set": {"rates": {}}})


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        pytest.param("/clock", b"", "body", id="no body"),
        pytest.param("/clock", b"[]", "body", id="no object"),
        pytest.param("/clock", {}, "advance_seconds", id="a field is missing"),
        pytest.param("/clock", {"advance_seconds": "1"}, "advance_seconds", id="a text for a number"),
        pytest.param("/clock", {"advance_seconds": True}, "advance_seconds", id="a boolean for a number"),
        pytest.param("/clock", {"advance_seconds": -1}, "advance_seconds", id="back in time"),
        pytest.param("/clock", b'{"advance_seconds": NaN}', "advance_seconds", id="not a number at all"),
        pytest.param("/clock", {"advance_seconds": 1, "by": 2}, "by", id="a field too many"),
        pytest.param("/capacity", {"times": 1}, "instance_type", id="no type"),
        pytest.param("/capacity", {"instance_type": "ml.g5.xlarge", "times": 0}, "times", id="no launch"),
        pytest.param("/quota", {"instance_type": "ml.g5.xlarge"}, "instances", id="no number"),
        pytest.param("/errors", {"operation": "X"}, "error_code", id="no code"),
        pytest.param(
            "/errors", {"operation": "X", "error_code": "Y", "principal": 1}, "principal", id="nobody's ARN"
        ),
        pytest.param("/world", {"max_instances_per_job": 1}, "set", id="values outside of set"),
        pytest.param("/world", {"set": []}, "set", id="values without names"),
        pytest.param("/world", {"set": {}, "unset": {}}, "unset", id="another verb"),
        pytest.param("/world", {"set": {"rate": {}}}, "rate", id="a value that no world has"),
        pytest.param("/world", {"set": {"events_doubled": 2}}, "events_doubled", id="more than all events"),
        pytest.param(
            "/errors", {"operation": "X", "error_code": "Y", "times": -1}, "times", id="less than none"
        ),
        pytest.param("/errors", {"clear": "yes"}, "clear", id="a text for a boolean"),
        pytest.param("/errors", {"clear": True, "operation": "X"}, "operation", id="clear what"),
        pytest.param("/deny", {"operation": "X"}, "seconds", id="for how long"),
        pytest.param("/deny", {"seconds": 1}, "operation", id="deny what"),
        pytest.param("/deny", {"operation": "X", "seconds": -1}, "seconds", id="less than no time"),
        pytest.param("/deny", {"operation": "X", "seconds": 1, "role_arn": 1}, "role_arn", id="no ARN"),
        pytest.param("/slow-stop", {"training_job": "j"}, "seconds", id="how slow"),
        pytest.param("/slow-stop", {"seconds": 1}, "training_job", id="the stop of what"),
        pytest.param("/events", {"drop": 1.5}, "drop", id="neither share nor count"),
        pytest.param("/events", {"drop": -0.1}, "drop", id="a negative share"),
        pytest.param("/events", {"seed": "x"}, "seed", id="a text for a seed"),
        pytest.param("/fail", {"reason": "r"}, "training_job", id="no job"),
        pytest.param("/fail", {"training_job": "j", "exit_code": "1"}, "exit_code", id="a text for a code"),
        pytest.param("/spot", {"training_job": "j"}, "action", id="no action"),
        pytest.param("/plan", PLAN | {"name": "spring plan"}, "name", id="a name with a space"),
        pytest.param("/plan", PLAN | {"name": None}, "name", id="a plan without a name"),
        pytest.param("/plan", PLAN | {"instance_type": "ml.m5.large"}, "instance_type", id="no such plans"),
        pytest.param("/plan", PLAN | {"instances": 0}, "instances", id="a plan of nothing"),
        pytest.param("/plan", PLAN | {"fee_usd": "1"}, "fee_usd", id="a text for a fee"),
        pytest.param("/plan", PLAN | {"windows": []}, "windows", id="a plan without windows"),
        pytest.param("/plan", PLAN | {"windows": ["now"]}, "windows", id="a window is an object"),
        pytest.param("/plan", PLAN | {"windows": [WINDOW] * 2}, "windows", id="windows that overlap"),
        pytest.param(
            "/plan", PLAN | {"windows": [{"from": WINDOW["to"], "to": WINDOW["from"]}]}, "windows", id="back"
        ),
        pytest.param("/plan", PLAN | {"windows": [WINDOW | {"to": "noon"}]}, "to", id="no instant"),
        pytest.param(
            "/plan", PLAN | {"windows": [WINDOW | {"from": "2026-06-01T12:00:00"}]}, "from", id="no zone"
        ),
        pytest.param("/plan", PLAN | {"status": "Active"}, "status", id="the clock says the status"),
        pytest.param("/plan-change", {"unhealthy": 1}, "name", id="the change of what"),
        pytest.param("/plan-change", {"name": "spring", "unhealthy": -1}, "unhealthy", id="less than none"),
        pytest.param("/plan-change", {"name": "spring", "extend_to": "soon"}, "extend_to", id="to when"),
        pytest.param("/gpu", {"percent": 1}, "training_job", id="gpu of no job"),
        pytest.param("/gpu", {"training_job": "j"}, "percent", id="no percent"),
        pytest.param("/gpu", {"training_job": "j", "percent": 101}, "percent", id="more than a GPU has"),
        pytest.param("/gpu", {"training_job": "j", "percent": 1, "host": 2}, "host", id="a host is a text"),
        pytest.param(
            "/gpu", {"training_job": "j", "percent": 1, "from_minute": 0.5}, "from_minute", id="half a minute"
        ),
    ],
)
def test_a_bad_body_is_refused_with_the_field(twin: RunningTwin, path: str, body: Any, field: str) -> None:
    answer = twin.control("POST", path, body)
    assert (answer.status, answer.json["field"]) == (400, field)


def test_a_plan_is_bought_and_changed(twin: RunningTwin) -> None:
    sagemaker = twin.client("sagemaker")
    answer = twin.control("POST", "/plan", PLAN)
    assert (answer.status, answer.json["arn"].rpartition("/")[2]) == (200, "spring")
    assert twin.control("POST", "/plan", PLAN).json["code"] == "ResourceInUse"

    later = {"name": "spring", "unhealthy": 1, "extend_to": "2026-12-02T12:00:00Z"}
    assert twin.control("POST", "/plan-change", later).status == 200

    shown = sagemaker.describe_training_plan(TrainingPlanName=answer.json["arn"])
    assert (shown["UnhealthyInstanceCount"], shown["DurationHours"]) == (1, 28)
    assert twin.control("POST", "/plan-change", later).json["code"] == "ValidationException"
    assert twin.control("POST", "/plan-change", {"name": "autumn"}).json["code"] == "ResourceNotFound"


def test_an_unknown_job_is_an_error(twin: RunningTwin) -> None:
    assert twin.control("POST", "/fail", {"training_job": "nobody", "reason": "r"}).status == 400
    assert twin.control("POST", "/spot", {"training_job": "nobody", "action": "interrupt"}).status == 400
    gpu = {"training_job": "nobody", "host": None, "percent": 1, "from_minute": None}
    assert twin.control("POST", "/gpu", gpu).status == 400


def test_there_are_no_training_jobs_yet(twin: RunningTwin) -> None:
    answer = twin.control("GET", "/training-jobs")
    assert (answer.status, answer.json) == (200, {"training_jobs": []})


def test_an_unknown_path_says_which_there_are(twin: RunningTwin) -> None:
    answer = twin.control("GET", "/clock")
    assert answer.status == 404
    assert "POST /clock" in answer.json["message"]
