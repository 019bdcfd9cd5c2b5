"""Shapes of the same work, and which is best: pure decisions of ``trainmaster advise``."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError
from trainmaster.core.memory.training_runs import run_of
from trainmaster_client.advice.assessments import Assessment, with_run_times
from trainmaster_client.advice.memory_fits import MemoryFit, memory_fit
from trainmaster_client.advice.ranking import By, ranked, recommend
from trainmaster_client.advice.shapes import (
    Candidate,
    Source,
    asked_for,
    network_note,
    proposals,
    read_shapes,
    shape_text,
    with_shapes,
)
from trainmaster_client.advice.spot_scores import SpotScores
from trainmaster_client.errors import InvalidArgumentError

REQUEST: dict[str, Any] = {
    "TrainingJobName": "job1",
    "ResourceConfig": {"InstanceType": "ml.g5.12xlarge", "InstanceCount": 1, "VolumeSizeInGB": 50},
}
POOL = {
    "name": "gpu",
    "capacity": {"ml.g5.12xlarge": 2, "ml.g5.4xlarge": 4, "ml.g5.48xlarge": 1, "ml.g6.12xlarge": 4},
    "spot_capacity": {"ml.g5.xlarge": 8, "ml.g5.2xlarge": 3},
}


def shape(text: str) -> Any:
    return read_shapes(text, where="a test")[0]


# ---- which shapes


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("ml.g5.xlarge=4", id="on demand"),
        pytest.param("ml.g5.xlarge=4:spot", id="spot"),
        pytest.param("ml.g5.xlarge=4:spot@subnet-0ab1", id="spot in a subnet"),
        pytest.param("ml.g5.xlarge=4@subnet-0ab1", id="on demand in a subnet"),
    ],
)
def test_a_shape_is_written_as_it_is_read(text: str) -> None:
    assert shape_text(shape(text)) == text


def test_what_is_no_shape_is_refused_by_the_rule_of_the_api_with_an_example() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"--shape: 'ml.g5.xlarge' is not a list of shapes: .*=4:spot"
    ):
        read_shapes("ml.g5.xlarge", where="--shape")


def test_the_same_accelerators_in_other_types_are_proposed_as_far_as_pools_have_them() -> None:
    """4 A10G: not 8 of them, not 4 L4, not 4 instances of which there are 3."""
    found = [shape_text(one) for one in proposals(shape("ml.g5.12xlarge=1"), [POOL])]
    assert found == ["ml.g5.12xlarge=1", "ml.g5.4xlarge=4", "ml.g5.xlarge=4:spot"]


def test_without_accelerators_only_the_other_capacity_of_the_same_type_is_like_it() -> None:
    pool = {
        "name": "cpu",
        "capacity": {"ml.m5.xlarge": 2, "ml.c5.xlarge": 2},
        "spot_capacity": {"ml.m5.xlarge": 2},
    }
    found = [shape_text(one) for one in proposals(shape("ml.m5.xlarge=2"), [pool])]
    assert found == ["ml.m5.xlarge=2", "ml.m5.xlarge=2:spot"]


def test_as_many_accelerators_with_another_memory_are_another_job() -> None:
    pool = {"name": "old", "capacity": {"ml.p3.16xlarge": 1, "ml.p3dn.24xlarge": 1, "ml.p3.8xlarge": 2}}
    found = [shape_text(one) for one in proposals(shape("ml.p3.16xlarge=1"), [pool])]
    assert found == ["ml.p3.16xlarge=1", "ml.p3.8xlarge=2"]


@pytest.mark.parametrize(
    ("request_", "shapes"),
    [
        pytest.param({}, ["ml.g5.12xlarge=1"], id="what ResourceConfig says"),
        pytest.param({"EnableManagedSpotTraining": True}, ["ml.g5.12xlarge=1:spot"], id="as spot"),
        pytest.param(
            {"Tags": [{"Key": "trainmaster:alternatives", "Value": "ml.g5.xlarge=4 ml.g5.2xlarge=4:spot"}]},
            ["ml.g5.xlarge=4", "ml.g5.2xlarge=4:spot"],
            id="with the tag ResourceConfig does not count",
        ),
        pytest.param(
            {"ResourceConfig": {"InstanceGroups": []}}, ["as requested"], id="groups are no one shape"
        ),
        pytest.param({"ResourceConfig": 3}, ["as requested"], id="nonsense is for the API to refuse"),
    ],
)
def test_the_request_asks_for(request_: dict[str, Any], shapes: list[str]) -> None:
    assert [str(one) for one in asked_for(REQUEST | request_)] == shapes


def test_other_tags_stay_when_shapes_are_tried() -> None:
    team = {"Key": "team", "Value": "vision"}
    tag = {"Key": "trainmaster:alternatives", "Value": "ml.g5.xlarge=4"}
    other = {"Key": "trainmaster:alternatives", "Value": "ml.g5.2xlarge=4"}
    assert with_shapes({**REQUEST, "Tags": [tag, team]}, "ml.g5.2xlarge=4")["Tags"] == [team, other]
    assert with_shapes({**REQUEST, "Tags": [tag, team]}, None)["Tags"] == [team]
    assert "Tags" not in with_shapes({**REQUEST, "Tags": [tag]}, None)


def test_tags_that_are_no_list_are_for_the_api_to_refuse() -> None:
    assert with_shapes({"Tags": 5}, None) == {"Tags": 5}
    assert with_shapes({"Tags": 5}, "ml.g5.2xlarge=4") == {"Tags": 5}


# ---- network and memory


@pytest.mark.parametrize(
    ("text", "hyperparameters", "note"),
    [
        pytest.param("ml.g5.12xlarge=1", {}, "one host: nothing goes over a network", id="one host"),
        pytest.param("ml.p5.48xlarge=2", {}, "2 hosts with EFA, if the image has it", id="EFA"),
        pytest.param(
            "ml.g5.xlarge=4",
            {},
            "4 hosts without EFA: each step waits for a slower network",
            id="any program",
        ),
        pytest.param(
            "ml.p3.8xlarge=2",
            {"preset": "llama2-7b"},
            "2 hosts with or without EFA, that is not known here:"
            " strategy hybrid_shard keeps the weights' traffic inside each host",
            id="the training program, several GPUs a host",
        ),
        pytest.param(
            "ml.g5.xlarge=4",
            {"preset": "llama2-7b"},
            "4 hosts without EFA:"
            " more gradient_accumulation_steps and reduce_dtype bf16 use the slow network less",
            id="the training program, one GPU a host",
        ),
    ],
)
def test_the_network_between_hosts(text: str, hyperparameters: dict[str, str], note: str) -> None:
    assert network_note(shape(text), run_of(hyperparameters)) == note


def test_memory_is_judged_for_the_training_program_alone() -> None:
    run = run_of({"preset": "llama2-7b"})
    tight, roomy = memory_fit(shape("ml.g5.xlarge=1"), run), memory_fit(shape("ml.p5.48xlarge=2"), run)
    assert tight is not None
    assert roomy is not None
    assert (tight.fits, tight.gpu_gib, roomy.fits, roomy.gpu_gib) == (False, 22.4, True, 80.0)
    assert memory_fit(shape("ml.g5.xlarge=1"), None) is None
    assert memory_fit(shape("ml.m5.xlarge=1"), run) is None


# ---- spot scores


class Ec2:
    """DescribeSubnets and GetSpotPlacementScores; ``error`` is raised instead."""

    meta = SimpleNamespace(region_name="eu-west-1")

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.error = error

    def client(self, service: str, **_: Any) -> "Ec2":
        assert service == "ec2"
        return self

    def describe_subnets(self, **question: Any) -> dict[str, Any]:
        zones, asked = {"subnet-a": "euw1-az1", "subnet-b": "euw1-az2"}, question["SubnetIds"]
        return {"Subnets": [{"SubnetId": one, "AvailabilityZoneId": zones[one]} for one in asked]}

    def get_spot_placement_scores(self, **question: Any) -> dict[str, Any]:
        self.asked.append(question)
        if self.error is not None:
            raise self.error
        if not question["SingleAvailabilityZone"]:
            return {"SpotPlacementScores": [{"Region": "eu-west-1", "Score": 7}]}
        scores = {"euw1-az1": 2, "euw1-az2": 5, "euw1-az3": 9}
        zones = [{"AvailabilityZoneId": one, "Score": score} for one, score in scores.items()]
        return {"SpotPlacementScores": [{"Region": "eu-west-1", **one} for one in zones]}


def test_a_score_is_that_of_the_subnet_s_zone_else_of_the_best_subnet_else_of_the_region() -> None:
    ec2 = Ec2()
    scores, both = SpotScores(ec2), ["subnet-a", "subnet-b"]  # type: ignore[arg-type]
    pinned = scores.score(shape("ml.g5.xlarge=4:spot@subnet-a"), both)
    assert (pinned.score, pinned.where) == (2, "subnet-a")
    assert scores.score(shape("ml.g5.xlarge=4:spot"), both).where == "subnet-b"
    assert scores.score(shape("ml.g5.xlarge=4:spot"), []).score == 7
    assert scores.best_subnet(shape("ml.g5.xlarge=4:spot"), both) == "subnet-b"
    assert [(one["InstanceTypes"], one["TargetCapacity"]) for one in ec2.asked] == [(["g5.xlarge"], 4)] * 2


@pytest.mark.parametrize(
    ("error", "unknown"),
    [
        pytest.param(
            ClientError({"Error": {"Code": "UnauthorizedOperation"}}, "GetSpotPlacementScores"),
            "UnauthorizedOperation",
            id="no right",
        ),
        pytest.param(ConnectTimeoutError(endpoint_url="https://ec2"), "ConnectTimeoutError", id="no network"),
    ],
)
def test_a_refusal_is_told_and_ec2_not_asked_again(error: Exception, unknown: str) -> None:
    ec2 = Ec2(error)
    scores = SpotScores(ec2)  # type: ignore[arg-type]
    assert scores.best_subnet(shape("ml.g5.xlarge=4:spot"), ["subnet-a", "subnet-b"]) == "subnet-a"
    found = scores.score(shape("ml.g5.2xlarge=4:spot"), ["subnet-a"])
    assert (found.score, found.unknown) == (None, unknown)
    assert len(ec2.asked) == 1


# ---- which is best


def assessed(text: str, *, hours: int = 1, usd: float | None = 10.0, **more: Any) -> Assessment:
    """Valid, starts so many hours after midnight, keeps checkpoints, unless told otherwise."""
    start = f"2026-11-21T{hours:02}:00:30Z"
    answer = {
        "valid": more.pop("valid", True),
        "pool": more.pop("pool", "gpu"),
        "estimated_start": {"p50": start, "p90": start},
        "estimated_cost_usd": usd,
        "would_preempt": more.pop("victims", []),
        "spot_record": [{"expected_interruptions": more.pop("interruptions", None)}],
    }
    candidate = Candidate(source=Source.OPTION, shape=shape(text))
    return Assessment(candidate=candidate, answer=answer, keeps_checkpoints=True, **more)


SOON = assessed("ml.g5.12xlarge=1", hours=1, usd=7.09)
CHEAP = assessed("ml.g5.xlarge=4:spot", hours=3, usd=5.64, interruptions=2.5)
CHEAP_TOO = assessed("ml.g5.xlarge=4", hours=2, usd=5.64)
REFUSED = assessed("ml.g5.2xlarge=4", hours=0, usd=1.0, valid=False)


@pytest.mark.parametrize(
    ("by", "order"),
    [
        pytest.param(By.START, [SOON, CHEAP_TOO, CHEAP, REFUSED], id="start"),
        pytest.param(By.COST, [CHEAP, CHEAP_TOO, SOON, REFUSED], id="cost: of equals spot, it bills less"),
        pytest.param(By.RISK, [SOON, CHEAP_TOO, CHEAP, REFUSED], id="risk"),
    ],
)
def test_shapes_are_in_the_order_asked_for_and_refused_ones_last(by: By, order: list[Assessment]) -> None:
    assert ranked([REFUSED, CHEAP, CHEAP_TOO, SOON], by) == order
    assert recommend(order, by).best is order[0]  # type: ignore[union-attr]


def spot(*, rate: float | None, hours: float = 10, keeps: bool = True) -> Assessment:
    """Two instances at 8 USD an hour together."""
    record = {
        "instance_type": "ml.g5.xlarge",
        "instances": 2,
        "interruptions_per_instance_hour": rate,
        "expected_interruptions": None if rate is None else rate * 2 * 72,
    }
    answer = {"valid": True, "usd_per_hour": 8.0, "estimated_cost_usd": 8.0 * hours, "spot_record": [record]}
    candidate = Candidate(source=Source.OPTION, shape=shape("ml.g5.xlarge=2:spot"))
    return Assessment(candidate=candidate, answer=answer, keeps_checkpoints=keeps)


@pytest.mark.parametrize(
    ("one", "interruptions", "usd"),
    [
        pytest.param(spot(rate=0.0), 0.0, 40.0, id="never interrupted: half of 8 USD for 10 hours"),
        pytest.param(spot(rate=0.1), 2.0, 44.0, id="two of half an hour, of the run's 10 hours, not of 72"),
        pytest.param(spot(rate=0.1, keeps=False), 2.0, 80.0, id="each costs half of the run"),
        pytest.param(spot(rate=None), None, 40.0, id="not known"),
    ],
)
def test_costs_are_what_is_expected_not_the_worst_case(
    one: Assessment, interruptions: float | None, usd: float
) -> None:
    assert one.expected_interruptions == interruptions
    assert one.expected_cost_usd == usd


def test_a_shape_in_which_no_job_ran_is_not_held_to_the_longest_run() -> None:
    """MaxRuntime is 10 hours; such jobs took 2 in another shape with as many accelerators."""
    measured = replace(
        assessed("ml.g5.12xlarge=1", usd=16.0), answer={"valid": True, "estimated_cost_usd": 16.0}
    )
    measured.answer["usd_per_hour"] = 8.0
    worst, smaller = spot(rate=0.0), assessed("ml.g5.xlarge=1", usd=10.0)
    four = replace(worst, candidate=Candidate(source=Source.PROPOSED, shape=shape("ml.g5.xlarge=4:spot")))
    found = with_run_times([measured, four, smaller], longest=10)
    assert [one.run_hours for one in found] == [2.0, 2.0, None]
    assert [one.expected_cost_usd for one in found] == [16.0, 8.0, 10.0]
    assert with_run_times([measured, four], longest=None) == [measured, four]


def test_spot_that_is_interrupted_all_the_time_is_dearer_than_on_demand() -> None:
    calm, restless = spot(rate=0.1), spot(rate=2.0)
    answer = {"valid": True, "usd_per_hour": 8.0, "estimated_cost_usd": 80.0}
    candidate = Candidate(source=Source.OPTION, shape=shape("ml.g5.xlarge=2"))
    on_demand = Assessment(candidate=candidate, answer=answer, keeps_checkpoints=True)
    assert ranked([restless, on_demand, calm], By.COST) == [calm, on_demand, restless]


def test_what_is_not_known_stands_behind_what_is() -> None:
    unpriced = assessed("ml.g5.12xlarge=2", usd=None)
    assert ranked([unpriced, SOON], By.COST) == [SOON, unpriced]


def test_the_tag_has_the_best_first_then_the_others_of_its_pool_that_nothing_speaks_against() -> None:
    elsewhere = assessed("ml.g5.16xlarge=4", pool="other")
    too_big = assessed("ml.g5.4xlarge=4", memory=MemoryFit(fits=False, needed_gib=30, gpu_gib=22.4))
    order = [too_big, SOON, elsewhere, CHEAP, REFUSED]
    found = recommend(order, By.START)
    assert found is not None
    assert found.best is SOON
    assert found.shapes == "ml.g5.12xlarge=1 ml.g5.xlarge=4:spot"


def test_spot_without_checkpoints_is_recommended_only_where_there_is_nothing_else() -> None:
    bare = Assessment(candidate=CHEAP.candidate, answer=CHEAP.answer)
    only, among = recommend([bare], By.COST), recommend([bare, SOON], By.COST)
    assert only is not None
    assert among is not None
    assert (only.best, only.shapes) == (bare, "ml.g5.xlarge=4:spot")
    assert (among.best, among.shapes) == (SOON, "ml.g5.12xlarge=1")


def test_who_would_be_stopped_for_the_best_is_said() -> None:
    found = recommend([assessed("ml.g5.12xlarge=1", victims=["a", None])], By.START)
    assert found is not None
    assert found.why == "it is likely to start first; it would stop 2 running"


def test_a_tag_holds_256_characters() -> None:
    many = [assessed(f"ml.g5.12xlarge={count}:spot@subnet-0123456789abcdef0") for count in range(1, 9)]
    found = recommend(many, By.START)
    assert found is not None
    assert len(found.shapes) <= 256
    assert len(found.shapes.split(" ")) == 5


def test_nothing_valid_means_no_recommendation() -> None:
    assert recommend([REFUSED], By.START) is None


ELASTIC_TAG = {"Key": "trainmaster:elastic", "Value": "2 4 8"}
ELASTIC: dict[str, Any] = {
    "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 8},
    "Tags": [ELASTIC_TAG, {"Key": "team", "Value": "vision"}],
}


def test_each_width_of_an_elastic_request_is_a_shape_the_largest_first() -> None:
    shapes = [str(candidate) for candidate in asked_for(ELASTIC)]
    assert shapes == ["ml.g5.xlarge=8", "ml.g5.xlarge=4", "ml.g5.xlarge=2"]


def test_a_width_is_tried_as_the_only_shape() -> None:
    team = {"Key": "team", "Value": "vision"}
    tried = with_shapes(ELASTIC, "ml.g5.xlarge=4")["Tags"]
    assert tried == [team, {"Key": "trainmaster:alternatives", "Value": "ml.g5.xlarge=4"}]
    assert with_shapes(ELASTIC, None)["Tags"] == [ELASTIC_TAG, team]


def test_a_tag_that_names_no_widths_is_refused_with_the_rule() -> None:
    spoiled = ELASTIC | {"Tags": [ELASTIC_TAG | {"Value": "8-2"}]}
    with pytest.raises(InvalidArgumentError, match="trainmaster:elastic"):
        asked_for(spoiled)
