"""Grids and random draws as people write them."""

import math

import pytest
from trainmaster_client.errors import InvalidOptionsError
from trainmaster_client.tuning.sweeps import MOST_TASKS, drawn, grid


def test_a_grid_is_every_combination_with_values_as_they_were_written() -> None:
    assert grid(["lr=1e-4,3e-4", "seed=1-3", "opt=adam"])[:4] == [
        {"lr": "1e-4", "seed": "1", "opt": "adam"},
        {"lr": "1e-4", "seed": "2", "opt": "adam"},
        {"lr": "1e-4", "seed": "3", "opt": "adam"},
        {"lr": "3e-4", "seed": "1", "opt": "adam"},
    ]
    assert [row["n"] for row in grid(["n=1-7:3,16"])] == ["1", "4", "7", "16"]


def test_draws_lie_in_their_ranges_on_their_scales() -> None:
    definitions = ["lr=log:1e-5..1e-2", "layers=int:2..4", "p=0..0.5", "opt=adam,sgd", "k=int:log:1..1000"]
    rows = drawn(definitions, count=300, seed=1)
    rates = [float(row["lr"]) for row in rows]
    assert all(1e-5 <= rate <= 1e-2 for rate in rates)
    assert 0.4 < sum(math.log10(rate) < -3.5 for rate in rates) / 300 < 0.6
    assert {row["layers"] for row in rows} == {"2", "3", "4"}
    assert all(0 <= float(row["p"]) <= 0.5 for row in rows)
    assert {row["opt"] for row in rows} == {"adam", "sgd"}
    assert sum(int(row["k"]) < 32 for row in rows) > 100


def test_the_same_seed_draws_the_same_and_more_draws_begin_with_them() -> None:
    few, many = (drawn(["lr=0..1"], count=count, seed=7) for count in (3, 9))
    assert many[:3] == few
    assert drawn(["lr=0..1"], count=3, seed=8) != few


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("lr", "'lr' is not NAME=VALUES"),
        ("lr=", "'lr=' is not NAME=VALUES"),
        ("lr=1,,2", "--grid lr: has an empty value"),
        ("lr=1,1", "--grid lr: has 1 twice"),
        ("seed=5-1", "--grid seed: has 5-1, which holds no number"),
        ("seed=0-9999999", "has 10001 combinations; use at most 10000"),
    ],
)
def test_a_mistake_in_a_grid_is_named(definition: str, message: str) -> None:
    with pytest.raises(InvalidOptionsError) as error:
        grid([definition])
    assert message in str(error.value)


def test_a_grid_that_is_too_large_says_how_large_it_is() -> None:
    with pytest.raises(InvalidOptionsError, match="has 10201 combinations"):
        grid(["a=0-100", "b=0-100"])
    with pytest.raises(InvalidOptionsError, match="has a twice"):
        grid(["a=1", "a=2"])


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("lr=log:0..1", "--random lr: 0 has no logarithm"),
        ("lr=1..0", "--random lr: 1..0 ends before it begins"),
        ("lr=int:0.5..2", "--random lr: 0.5..2 are not whole numbers"),
        ("lr=lin:0..2", "--random lr: 'lin' is no scale; there are log and int"),
        ("lr=a..b", "--random lr: 'a..b' is not a range of numbers"),
        ("lr=0..inf", "--random lr: '0..inf' is not a range of numbers"),
    ],
)
def test_a_mistake_in_a_range_is_named(definition: str, message: str) -> None:
    with pytest.raises(InvalidOptionsError) as error:
        drawn([definition], count=3, seed=0)
    assert message in str(error.value)


@pytest.mark.parametrize("count", [0, -1, MOST_TASKS + 1])
def test_a_number_of_draws_has_bounds(count: int) -> None:
    with pytest.raises(InvalidOptionsError, match=f"{count} is not valid"):
        drawn(["lr=0..1"], count=count, seed=0)
    with pytest.raises(InvalidOptionsError, match="has no range"):
        drawn([], count=3, seed=0)
