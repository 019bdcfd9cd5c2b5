"""How the batch of a step is divided at each width of a job."""

from typing import Any

import pytest
import torch

from training.config import TrainConfig
from training.config.choices import Strategy
from training.errors import ConfigError
from training.ranks.division import Division, divided
from training.ranks.world import World


def world(hosts: int, *, per_host: int = 1) -> World:
    return World(
        rank=0, size=hosts * per_host, local_rank=0, ranks_per_host=per_host, device=torch.device("cpu")
    )


def at(width: int, *, widths: str = "", per_host: int = 1, **options: Any) -> Division:
    config = TrainConfig(**options)
    return divided(config, world(width, per_host=per_host), {"TRAINMASTER_WIDTHS": widths})


def refusal(width: int, *, widths: str = "", per_host: int = 1, **options: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        at(width, widths=widths, per_host=per_host, **options)
    return "; ".join(refused.value.problems)


@pytest.mark.parametrize(
    ("width", "parts"),
    [
        pytest.param(8, 2, id="the option's at the largest width"),
        pytest.param(4, 4, id="twice as many at half of it"),
        pytest.param(2, 8, id="four times at a quarter"),
        pytest.param(1, 16, id="eight times alone"),
        pytest.param(6, 4, id="no part is larger where it does not come out even: 16 of 4, not 3 of 5.3"),
    ],
)
def test_a_part_is_never_larger_than_at_the_largest_width(width: int, parts: int) -> None:
    division = at(width, widths="1 2 4 6 8", batch_size=96, gradient_accumulation_steps=2)
    assert division.parts == parts
    assert 96 // width // division.parts <= 96 // 8 // 2


def test_a_job_of_one_width_is_divided_as_its_options_say() -> None:
    assert at(2, batch_size=8, gradient_accumulation_steps=2) == Division(world=world(2), parts=2)


def test_ranks_of_a_tensor_group_share_a_part() -> None:
    options: dict[str, Any] = {"per_host": 2, "tensor_parallel": 2, "batch_size": 8}
    assert [at(width, widths="1 2 4", **options).parts for width in (4, 2, 1)] == [1, 2, 4]


def test_R4_a_width_that_does_not_divide_the_batch_names_those_that_do() -> None:
    assert refusal(3, widths="1-4", batch_size=8) == (
        "batch_size 8 does not divide by 3 ranks of width 3; take 6 or 9; "
        "widths of this job that do: 1, 2 or 4"
    )


def test_R4_the_largest_width_is_refused_with_the_parts_of_its_option() -> None:
    said = refusal(4, widths="1 2 4", batch_size=6, gradient_accumulation_steps=1)
    assert said == (
        "batch_size 6 does not divide by 4 ranks x 1 gradient_accumulation_steps; take 4 or 8; "
        "widths of this job that do: 1 or 2"
    )


def test_R4_a_job_none_of_whose_widths_fits_says_so() -> None:
    assert refusal(2, widths="2 4", batch_size=7).endswith("; widths of this job that do: none")


def test_R4_without_widths_the_numbers_of_ranks_are_named() -> None:
    assert refusal(3, batch_size=8).endswith("; take 6 or 9, or train on 1, 2, 4 or 8 ranks")
    assert refusal(3, batch_size=8, per_host=2, tensor_parallel=2).endswith("or train on 2, 4, 8 or 16 ranks")
    assert refusal(3, batch_size=7, gradient_accumulation_steps=2).endswith("; take 6 or 12")


def test_a_list_of_many_widths_is_cut_to_what_a_failure_reason_holds() -> None:
    said = refusal(97, widths="1-128", batch_size=5040)
    assert "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14 and " in said
    assert len(said) < 300


def test_a_width_whose_ranks_cannot_divide_the_model_names_those_that_can() -> None:
    options: dict[str, Any] = {
        "strategy": Strategy.HYBRID_SHARD,
        "shard_group_size": 4,
        "per_host": 2,
        "batch_size": 24,
    }
    said = refusal(3, widths="2 3 4", **options)
    assert said == "shard_group_size 4 does not divide 6 ranks; widths of this job that do: 2 or 4"


def test_a_fitting_width_says_which_others_would_end_the_job() -> None:
    notes = at(4, widths="1-4", batch_size=8).notes
    assert notes == (
        "width: 4 of at most 4, gradient_accumulation_steps 1",
        "warning: width 3 would end with exit code 1; widths of this job that do: 1, 2 or 4",
    )
