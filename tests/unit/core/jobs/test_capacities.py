"""Kinds of instances as texts: on-demand, spot, each training plan, and kinds that a later release counts."""

import pytest
from trainmaster.core.jobs.instances import (
    Capacity,
    CapacityType,
    Choice,
    Shape,
    lane_text,
    on_demand,
    parse_known,
    parse_vector,
)

P5 = "ml.p5.48xlarge"
SPRING = Capacity.of_plan(P5, "spring")


@pytest.mark.parametrize(
    ("text", "kind", "plan"),
    [
        (P5, CapacityType.ON_DEMAND, None),
        (f"{P5}:spot", CapacityType.SPOT, None),
        (f"{P5}:plan", CapacityType.PLAN, None),
        (f"{P5}:plan/spring", CapacityType.PLAN, "spring"),
        (f"{P5}:plan/a-spot", CapacityType.PLAN, "a-spot"),
    ],
)
def test_a_capacity_says_its_type_kind_and_plan(text: str, kind: CapacityType, plan: str | None) -> None:
    capacity = Capacity.parse(text)
    assert (capacity.instance_type, capacity.capacity_type, capacity.plan) == (P5, kind, plan)
    assert capacity.is_on_demand is (kind is CapacityType.ON_DEMAND)
    assert capacity.is_plan is (kind is CapacityType.PLAN)


def test_an_unknown_kind_is_neither_read_from_a_row_nor_counted_on_demand() -> None:
    text = f"{P5}:flex/x=2"
    with pytest.raises(ValueError, match="a kind of capacity that this version does not know"):
        parse_known(text)
    (counted,) = parse_vector(text)
    assert not counted.is_on_demand
    assert counted.instance_type != P5
    assert parse_known(f"{SPRING}=2+{P5}=1") == {SPRING: 2, Capacity(P5): 1}


def test_moved_off_spot_a_job_keeps_its_shapes_on_plans() -> None:
    shapes = (Shape(vector={SPRING: 1}), Shape(vector={Capacity(P5, CapacityType.SPOT): 1}))
    assert [list(shape.vector) for shape in on_demand(shapes)] == [[SPRING], [Capacity(P5)]]


def test_jobs_that_avoid_plans_have_a_lane_of_their_own() -> None:
    plain, avoids = Shape(vector={Capacity(P5): 1}), Shape(vector={Capacity(P5): 1}, avoids_plans=True)
    texts = [lane_text([shape], Choice.FIRST_FIT) for shape in (plain, avoids)]
    assert texts == [f"{P5}=1", f"{P5}=1@~"]
