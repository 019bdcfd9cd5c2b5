"""``trainmaster advise --plans``: offerings of AWS against the queue that the API exports."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError
from botocore.stub import ANY, Stubber

from tests.integration.client.command import Trainmaster
from tests.integration.client.fake_api import FakeApi, Scripted, problem

P5 = "ml.p5.48xlarge"
POOLS = {
    "pools": [
        {"name": "p5", "capacity": {P5: 2}, "spot_capacity": {}},
        {"name": "more", "capacity": {P5: 1, "ml.m5.large": 4}, "spot_capacity": {}},
    ]
}
NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)
LINES = {"content-type": "application/x-ndjson"}


def text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def line(name: str, *, instances: dict[str, int] | None = None, **changes: Any) -> str:
    job = {
        "name": name,
        "team": "vision",
        "submitted_by": "ann",
        "pool": "p5",
        "instances": instances or {P5: 3},
        "capacity_type": "on-demand",
        "priority": 0,
        "submitted_at": text(NOW - 50 * HOUR),
        "max_runtime_seconds": 400_000,
        "saves_checkpoints": True,
        "attempts": [],
        "end": None,
        "ended_at": None,
    }
    return json.dumps(job | changes)


def done(hours: float) -> str:
    """A job that has shown how long such jobs train."""
    attempt = {
        "started_at": text(NOW - (hours + 1) * HOUR),
        "training_since": text(NOW - (hours + 1) * HOUR),
        "ended_at": text(NOW - HOUR),
        "end": "completed",
        "lost_seconds": 0,
    }
    return line("done", attempts=[attempt], end="completed", ended_at=text(NOW - HOUR))


def offering(
    number: int, *, fee: str | None = "41000.00", begins: float = 24, count: int = 3
) -> dict[str, Any]:
    begin = NOW + begins * HOUR
    reserved = {
        "InstanceType": P5,
        "InstanceCount": count,
        "AvailabilityZone": "us-east-1a",
        "StartTime": begin,
        "EndTime": begin + 48 * HOUR,
    }
    return {
        "TrainingPlanOfferingId": f"tpo-{number}",
        "TargetResources": ["training-job"],
        **({} if fee is None else {"UpfrontFee": fee}),
        "CurrencyCode": "USD",
        "ReservedCapacityOfferings": [reserved],
    }


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    client = boto3.client(
        "sagemaker", region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    monkeypatch.setattr("trainmaster_client.cli.plan_advice.aws_client", lambda _: client)
    with Stubber(client) as stubber:
        yield stubber


def script(api: FakeApi, *lines: str) -> None:
    api.script("GET", "/pools", Scripted(document=POOLS))
    api.script("GET", "/history/export", Scripted(raw="\n".join(lines).encode(), headers=LINES))


def sells(aws: Stubber, *offerings: dict[str, Any], count: int = 3, hours: int | object = ANY) -> None:
    question = {
        "InstanceType": P5,
        "InstanceCount": count,
        "DurationHours": hours,
        "StartTimeAfter": ANY,
        "TargetResources": ["training-job"],
    }
    aws.add_response("search_training_plan_offerings", {"TrainingPlanOfferings": list(offerings)}, question)


def test_each_offering_says_its_fee_its_use_and_what_the_queue_gains(
    trainmaster: Trainmaster, api: FakeApi, aws: Stubber
) -> None:
    script(api, done(40), *(line(f"waits-{number}") for number in range(4)))
    sells(aws, offering(1), offering(2, fee=None), hours=7 * 24)
    ran = trainmaster("advise", "--plans")

    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.splitlines()
    assert lines[0].startswith(
        f"{P5}: 4 waiting and 0 running on 3 on demand; 480 instance-hours of work, done "
    )
    assert lines[1].startswith("1. 3 instances for 48 h from ")
    assert ": 41,000 USD; your queue would use 9" in lines[1]
    assert lines[1].endswith(" of it and be empty 2 days sooner.")
    assert "on demand." in lines[2]
    assert lines[3] == (
        "   aws sagemaker create-training-plan --training-plan-name NAME --training-plan-offering-id tpo-1"
    )
    assert ": fee unknown; your queue would use" in lines[4]
    assert lines[-1].startswith("Nothing was bought.")
    aws.assert_no_pending_responses()


def test_in_json_it_is_all_there(trainmaster: Trainmaster, api: FakeApi, aws: Stubber) -> None:
    script(api, done(40), line("waits"), line("wide", instances={P5: 16}))
    sells(aws, offering(1, count=16), count=16, hours=72)
    ran = trainmaster("advise", "--plans", "--hours", "72", "--json")

    [queue] = json.loads(ran.out)["queues"]
    assert (queue["capacity"], queue["waiting"], queue["stranded"]) == (3, 2, ["wide"])
    [shown] = queue["offerings"]
    assert (shown["training_plan_offering_id"], shown["fee"], shown["stranded"]) == ("tpo-1", 41000.0, [])
    assert 0 < shown["use"] < 1


def test_its_options_say_what_to_look_for(trainmaster: Trainmaster, api: FakeApi, aws: Stubber) -> None:
    script(api, done(40), line("waits"), line("other", instances={"ml.p4d.24xlarge": 1}))
    sells(aws, count=2, hours=24)
    ran = trainmaster("advise", "--plans", "--type", P5, "--instances", "2", "--hours", "24")

    assert f"AWS offers no plan of 2 {P5} for 24 h from " in ran.out
    assert ran.code == 0
    aws.assert_no_pending_responses()


def test_without_work_for_a_plan_aws_is_not_asked(
    trainmaster: Trainmaster, api: FakeApi, aws: Stubber
) -> None:
    script(api, done(4), line("waits", instances={"ml.m5.large": 1}))
    ran = trainmaster("advise", "--plans")

    assert ran.out == (
        "No job waits for instances that training plans are sold for: a plan would stand idle.\n"
    )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param(
            "AccessDeniedException", "You need sagemaker:SearchTrainingPlanOfferings", id="no right"
        ),
        pytest.param("ValidationException", "Nothing was bought", id="a Region without plans"),
    ],
)
def test_a_refusal_of_aws_is_said_with_what_to_do(
    trainmaster: Trainmaster, api: FakeApi, aws: Stubber, code: str, said: str
) -> None:
    script(api, line("waits"))
    aws.add_client_error("search_training_plan_offerings", code, "no")
    ran = trainmaster("advise", "--plans")

    assert (ran.code != 0, ran.out) == (True, "")
    assert f"AWS does not say which training plans it sells: {code}: no {said}" in ran.err


def test_so_is_a_network_that_does_not_answer(
    trainmaster: Trainmaster, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unreachable:
        def search_training_plan_offerings(self, **_: Any) -> None:
            raise EndpointConnectionError(endpoint_url="https://api.sagemaker")

    monkeypatch.setattr("trainmaster_client.cli.plan_advice.aws_client", lambda _: Unreachable())
    script(api, line("waits"))
    assert "EndpointConnectionError" in trainmaster("advise", "--plans").err


def test_who_is_no_admin_is_told_so(trainmaster: Trainmaster, api: FakeApi, aws: Stubber) -> None:
    api.script("GET", "/history/export", problem(403, "Forbidden", "admins only"))
    ran = trainmaster("advise", "--plans")

    assert (ran.code, ran.out) == (2, "")
    assert "only admins may read. Ask an admin to run it." in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param([], "FILE is missing.", id="neither"),
        pytest.param(["--hours", "3"], "--hours is for training plans. Add --plans.", id="an option alone"),
        pytest.param(["--plans", "--type", "ml.m5.large"], "No training plans are sold for ml.m5", id="type"),
        pytest.param(["--plans", "--instances", "0"], "--instances 0 is not 1 to 256.", id="no instance"),
        pytest.param(["--plans", "--hours", "9999"], "--hours 9999 is not 1 to 4,368.", id="too long"),
        pytest.param(["--plans", "--from", "soon"], "--from 'soon' is not a valid time.", id="no instant"),
        pytest.param(["job.json", "--plans"], "--plans is about the whole queue. Leave FILE out.", id="both"),
    ],
)
def test_wrong_usage_is_exit_code_2(
    trainmaster: Trainmaster, tmp_path: Any, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.json").write_text("{}")
    ran = trainmaster("advise", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
