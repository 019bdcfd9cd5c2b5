"""``trainmaster:alternatives=cheapest``: the pool's shapes in the order of measured work per dollar."""

from datetime import timedelta
from typing import Any

import pytest
from trainmaster.api import build_api
from trainmaster.core.durations.work_speeds import WorkSpeed

from tests.bodies import body
from tests.builders import minutes, seen
from tests.ends import observed
from tests.integration.api.conftest import ADMIN, DOCUMENT, Api, throttled

SMALL, LARGE = "ml.g5.4xlarge", "ml.g5.12xlarge"
POOL = {"name": "main", "capacity": {LARGE: 2, SMALL: 8}, "spot_capacity": {SMALL: 8}}
PRICES = {LARGE: 7.0, SMALL: 2.0}
ONE_LARGE, FOUR_SPOT = f"{LARGE}=1", f"{SMALL}=4:spot"
SAVES = {"CheckpointConfig": {"S3Uri": "s3://vision-data/checkpoints"}}


@pytest.fixture(autouse=True)
def pool(api: Api) -> None:
    put(api)


def put(api: Api, pool: dict[str, Any] = POOL, prices: dict[str, float] = PRICES) -> None:
    document = {**DOCUMENT, "pools": [pool], "prices": prices}
    assert api.call("PUT", "/policy", document, user=ADMIN).status == 200


def request_of(name: str, shapes: str, **changes: Any) -> dict[str, Any]:
    tag = {"Key": "trainmaster:alternatives", "Value": shapes}
    resources = {"InstanceType": LARGE, "InstanceCount": 1, "VolumeSizeInGB": 50}
    return body(**{"TrainingJobName": name, "Tags": [tag], "ResourceConfig": resources} | SAVES | changes)


def train(api: Api, name: str, shape: str, per_second: float, unit: str = "tokens", **changes: Any) -> None:
    """One job of the program ``bert``, from its submission to its end."""
    assert api.call("POST", "/add-job", request_of(name, shape, **changes)).status == 201
    job = api.start(name)
    news = seen(
        name,
        status="Completed",
        secondary="Completed",
        training_since=api.now - minutes(30),
        ended_at=api.now,
        speed=WorkSpeed(unit=unit, per_1000_s=round(1000 * per_second)),
    )
    change = observed(job, news, now=api.now)
    assert change is not None
    api.store.commit([change], at=api.now)


def measure(api: Api) -> None:
    """Two runs of each shape: 1,200 tokens a second for 4 USD an hour, 1,600 for 7."""
    for number, per_second in enumerate((1190.0, 1210.0)):
        train(api, f"bert-{10 + number}", FOUR_SPOT, per_second)
    for number, per_second in enumerate((1590.0, 1610.0)):
        train(api, f"bert-{20 + number}", ONE_LARGE, per_second)


BECAUSE = (
    "4 x ml.g5.4xlarge on spot: 1.31x the tokens per USD of 1 x ml.g5.12xlarge, measured on 4 runs;"
    " spot is assumed to cost 50% of the price"
)


def test_the_shape_with_more_work_per_dollar_is_the_first(api: Api) -> None:
    measure(api)
    answer = api.call("POST", "/add-job", request_of("bert-3", "cheapest"))
    assert answer.status == 201, answer.json
    (warning,) = answer.json["warnings"]
    assert warning["field"] == "Tags[0].Value"
    assert warning["message"] == f"stands for {FOUR_SPOT} {ONE_LARGE}. {BECAUSE}"
    view = api.get("/jobs/bert-3").json
    assert (view["shapes_because"], view["set_by_pool"]) == (BECAUSE, [])
    first, second = api.job("bert-3").spec.shapes
    assert (first.vector, second.vector) == ({f"{SMALL}:spot": 4}, {LARGE: 1})
    assert api.reader.request("bert-3")["Tags"][0]["Value"] == f"{FOUR_SPOT} {ONE_LARGE}"


def test_the_dry_run_says_the_same_and_stores_nothing(api: Api) -> None:
    measure(api)
    request = request_of("bert-3", "cheapest")
    answer = api.call("POST", "/add-job", request, query={"dry_run": "true"})
    assert answer.json["valid"]
    assert answer.json["warnings"][0]["message"].endswith(BECAUSE)
    assert api.reader.job("bert-3") is None


def test_any_dry_run_shows_what_was_measured_of_the_program(api: Api) -> None:
    measure(api)
    train(api, "bert-30", ONE_LARGE, 16.0, unit="samples")
    answer = api.call("POST", "/add-job", request_of("bert-3", ONE_LARGE), query={"dry_run": "true"})
    measured = {"unit": "tokens", "runs": 2}
    assert answer.json["measured_speeds"] == [
        {"instance_type": LARGE, "capacity_type": "on-demand", "instances": 1, "per_second": 1600} | measured,
        {"instance_type": SMALL, "capacity_type": "spot", "instances": 4, "per_second": 1200} | measured,
    ]
    other = request_of("gpt-1", ONE_LARGE)
    assert not api.call("POST", "/add-job", other, query={"dry_run": "true"}).json["measured_speeds"]


def test_the_same_request_again_is_the_same_job_whatever_was_measured_meanwhile(api: Api) -> None:
    measure(api)
    request = request_of("bert-3", "cheapest")
    api.call("POST", "/add-job", request)
    train(api, "bert-30", ONE_LARGE, 9000.0)
    train(api, "bert-31", ONE_LARGE, 9000.0)
    again = api.call("POST", "/add-job", request)
    assert (again.status, again.json["job"]["name"]) == (200, "bert-3")
    assert api.get("/jobs/bert-3").json["shapes_because"] == BECAUSE


def refusal(api: Api, **changes: Any) -> str:
    answer = api.call("POST", "/add-job", request_of("bert-3", "cheapest", **changes))
    assert answer.status == 400, answer.json
    assert answer.fields == ["Tags[0].Value"]
    return str(answer.json["errors"][0]["message"])


def test_without_a_measure_it_is_refused_with_what_there_is(api: Api) -> None:
    assert refusal(api).endswith("measured: none")
    train(api, "bert-10", FOUR_SPOT, 1200.0)
    train(api, "bert-20", ONE_LARGE, 1600.0)
    train(api, "bert-21", ONE_LARGE, 1600.0)
    assert refusal(api).endswith(f"measured: 3 in 2 shapes ({LARGE}=1, {SMALL}:spot=4)")  # one run only


def test_units_are_never_mixed(api: Api) -> None:
    for number in range(2):
        train(api, f"bert-{10 + number}", FOUR_SPOT, 1200.0)
        train(api, f"bert-{20 + number}", ONE_LARGE, 16.0, unit="samples")
    refusal(api)


def test_another_program_or_team_or_old_runs_are_no_measure(api: Api) -> None:
    measure(api)
    other = api.call("POST", "/add-job", request_of("gpt-3", "cheapest"))
    assert other.status == 400
    api.now += timedelta(days=91)
    refusal(api)


def test_a_type_that_left_the_policy_or_has_no_price_is_left_out(api: Api) -> None:
    measure(api)
    put(api, {**POOL, "spot_capacity": {}})
    refusal(api)
    put(api, POOL)
    assert api.call("POST", "/add-job", request_of("bert-3", "cheapest")).status == 201


def test_a_job_without_checkpoints_is_given_no_spot(api: Api) -> None:
    measure(api)
    refusal(api, CheckpointConfig=None)


def test_runs_with_the_same_hyperparameters_count_first(api: Api) -> None:
    measure(api)
    deeper: dict[str, Any] = {"HyperParameters": {"layers": "48"}}
    answer = api.call("POST", "/add-job", request_of("bert-3", "cheapest", **deeper))
    assert "measured on 4 runs with other hyperparameters" in answer.json["warnings"][0]["message"]
    for number in range(2):
        train(api, f"bert-{40 + number}", FOUR_SPOT, 100.0, **deeper)
        train(api, f"bert-{50 + number}", ONE_LARGE, 1000.0, **deeper)
    answer = api.call("POST", "/add-job", request_of("bert-4", "cheapest", **deeper))
    assert f"stands for {ONE_LARGE} {FOUR_SPOT}. " in answer.json["warnings"][0]["message"]


def test_with_plans_only_it_is_refused(api: Api) -> None:
    tags = [
        {"Key": "trainmaster:alternatives", "Value": "cheapest"},
        {"Key": "trainmaster:plan", "Value": "only"},
    ]
    assert "paid for in advance" in refusal(api, Tags=tags)


NEW, NEWER = "ml.g9.12xlarge", "ml.g10.12xlarge"
"""Types that the table of list prices does not have."""


def measure_new(api: Api, instance_type: str, number: int) -> None:
    resources = {"InstanceType": instance_type, "InstanceCount": 1, "VolumeSizeInGB": 50}
    for run in range(2):
        name = f"bert-{number + run}"
        train(api, name, f"{instance_type}=1", 5000.0, ResourceConfig=resources)


def test_a_shape_without_a_price_is_left_out_and_the_reason_says_so(api: Api) -> None:
    capacity = {LARGE: 2, SMALL: 8, NEW: 2}
    put(api, {**POOL, "capacity": capacity})
    measure(api)
    measure_new(api, NEW, 40)
    answer = api.call("POST", "/add-job", request_of("bert-3", "cheapest"))
    assert answer.status == 201, answer.json
    message = f"stands for {FOUR_SPOT} {ONE_LARGE}. {BECAUSE}; left out, as the policy has no price: {NEW}"
    assert answer.json["warnings"][0]["message"] == message
    put(api, {**POOL, "capacity": capacity}, {**PRICES, NEW: 1.0})
    answer = api.call("POST", "/add-job", request_of("bert-4", "cheapest"))
    assert answer.json["warnings"][0]["message"].startswith(f"stands for {NEW}=1 {FOUR_SPOT} {ONE_LARGE}. ")


def test_without_any_price_it_is_refused_with_the_key_that_takes_them(api: Api) -> None:
    put(api, {"name": "main", "capacity": {NEW: 2, NEWER: 2}})
    measure_new(api, NEW, 40)
    measure_new(api, NEWER, 50)
    resources = {"InstanceType": NEW, "InstanceCount": 1, "VolumeSizeInGB": 50}
    answer = api.call("POST", "/add-job", request_of("bert-3", "cheapest", ResourceConfig=resources))
    assert (answer.status, answer.fields) == (400, ["Tags[0].Value"])
    (error,) = answer.json["errors"]
    assert error["message"].endswith(f"; without a price: {NEWER}, {NEW}")
    assert f"prices: {{{NEWER}: 4.5}}" in error["hint"]


def test_a_dry_run_answers_without_speeds_while_their_rows_are_throttled(api: Api) -> None:
    measure(api)
    api.handle = build_api(api.outside(reader=throttled(api)))
    answer = api.call("POST", "/add-job", request_of("bert-3", ONE_LARGE), query={"dry_run": "true"})
    assert (answer.status, answer.json["valid"], answer.json["measured_speeds"]) == (200, True, None)


@pytest.mark.parametrize("query", [{}, {"dry_run": "true"}], ids=["submission", "dry run"])
def test_cheapest_is_unavailable_while_the_speeds_are_and_not_taken_for_unmeasured(
    api: Api, query: dict[str, str]
) -> None:
    measure(api)
    api.handle = build_api(api.outside(reader=throttled(api)))
    answer = api.call("POST", "/add-job", request_of("bert-3", "cheapest"), query=query)
    assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
    assert answer.json["detail"] == "the table refused: ProvisionedThroughputExceededException"
    assert api.reader.job("bert-3") is None
