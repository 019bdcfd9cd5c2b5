"""Which strategies a run could have, and how it may scale at most: by hand."""

from dataclasses import replace
from itertools import product

import pytest
from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.memory.footprint import Cluster, cluster_of
from trainmaster.core.memory.model_shapes import PRESETS
from trainmaster.core.memory.program_shapes import ActivationCheckpointing, OptimizerName, Precision, Strategy
from trainmaster.core.memory.scaling_bound import SPEEDS, Bound, bound
from trainmaster.core.memory.strategy_choice import Choice, choice_json, choice_lines, choices
from trainmaster.core.memory.training_runs import Run

from tests.markdown import text_of

P5 = "ml.p5.48xlarge"
SEVEN = Run(shape=PRESETS["llama2-7b"], batch_size=128)


def p5(hosts: int) -> Cluster:
    return cluster_of([(BY_TYPE[P5], hosts)])


def compared(run: Run, hosts: int) -> list[Choice]:
    return list(choices(run, p5(hosts), SPEEDS[P5]))


def test_seconds_are_flops_over_half_the_peak_and_bytes_over_stated_bandwidths() -> None:
    found = bound(replace(SEVEN, strategy=Strategy.HYBRID_SHARD), p5(16), SPEEDS[P5])
    assert found is not None
    weights = 32 * (4 * 4096**2 + 3 * 4096 * 11_008) + 32_000 * 4096
    flops = 4096 * (6 * weights + 12 * 32 * 4096 * 4096)
    assert found.compute_seconds == pytest.approx(flops / (989e12 / 2))
    # 8 ranks of a host share 3200 Gbit/s; each sums an eighth of the gradients with 15 others.
    assert found.between_seconds == pytest.approx(2 * 4 * 6_738_415_616 / 8 * 15 / 16 * 8 / 400e9)
    assert found.inside_seconds == pytest.approx(8 * 6_738_415_616 * 7 / 8 / 450e9, rel=0.02)
    assert found.waiting_seconds == 0


def test_what_hides_costs_nothing_until_it_takes_longer_than_computing() -> None:
    hidden = Bound(compute_seconds=1, waiting_seconds=0, inside_seconds=0.5, between_seconds=0.9)
    assert hidden.at_most == 1
    assert hidden.unhidden == pytest.approx(1 / 2.4)
    slow = replace(hidden, between_seconds=2)
    assert slow.at_most == 0.5
    divided = replace(hidden, waiting_seconds=0.25)
    assert divided.at_most == 0.8


def test_blocks_that_are_computed_again_take_a_third_more_of_their_time() -> None:
    again = replace(SEVEN, activation_checkpointing=ActivationCheckpointing.FULL)
    once, twice = (bound(one, p5(1), SPEEDS[P5]) for one in (SEVEN, again))
    assert once is not None
    assert twice is not None
    assert 1.3 < twice.compute_seconds / once.compute_seconds < 4 / 3


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(replace(SEVEN, precision=Precision.FP32), id="another peak"),
        pytest.param(replace(SEVEN, precision=Precision.FLOAT8), id="float8"),
        pytest.param(replace(SEVEN, cpu_offload=True), id="the host's memory"),
    ],
)
def test_nothing_is_said_of_the_scaling_of_what_has_no_stated_speed(run: Run) -> None:
    assert bound(run, p5(1), SPEEDS[P5]) is None
    assert bound(SEVEN, p5(1), None) is None
    shown = list(choice_lines(choices(run, p5(1), SPEEDS[P5])))
    assert shown[-1].startswith("No bound of the scaling")


def test_the_run_as_asked_is_always_there_and_others_only_where_they_fit() -> None:
    seventy = Run(shape=PRESETS["llama2-70b"], batch_size=8, strategy=Strategy.NO_SHARD)
    (only,) = compared(seventy, hosts=1)
    assert (only.is_asked, only.estimate.fits) == (True, False)
    found = compared(replace(SEVEN, strategy=Strategy.NO_SHARD, precision=Precision.BF16_PURE), hosts=16)
    assert [one.is_asked for one in found].count(True) == 1
    assert all(one.estimate.fits for one in found if not one.is_asked)
    assert len({(one.run.strategy, one.run.tensor_parallel) for one in found}) == len(found)


def test_a_group_of_all_ranks_is_not_shown_as_another_strategy() -> None:
    names = {one.name for one in compared(replace(SEVEN, batch_size=8), hosts=1)}
    assert names == {"full_shard", "shard_grad_op", "tp"}


def test_what_the_program_refuses_is_not_proposed() -> None:
    small = Run(shape=PRESETS["tiny"], batch_size=16)
    names = {one.name for one in compared(small, hosts=2)}
    assert "full_shard" in names
    assert "no_shard" in names
    assert not any("tp" in name for name in names)  # four heads for eight ranks
    divided = {one.name for one in compared(replace(SEVEN, batch_size=16), hosts=2)}
    assert "full_shard tp 8" in divided
    adam, float8 = {"optimizer": OptimizerName.ADAMW_8BIT}, {"precision": Precision.FLOAT8}
    for fields in ({"lora_rank": 8}, adam, float8):
        run = replace(SEVEN, batch_size=16, **fields)
        assert not any("tp" in one.name for one in compared(run, hosts=2))


def test_the_best_bound_comes_first_and_the_table_fits_a_terminal() -> None:
    for hosts, strategy in product((1, 2, 16), Strategy):
        found = compared(replace(SEVEN, batch_size=256, strategy=strategy), hosts)
        bounds = [one.bound.at_most for one in found if one.bound and one.estimate.fits]
        assert bounds == sorted(bounds, reverse=True)
        assert all(len(line) < 80 for line in choice_lines(found))


def test_json_has_bytes_and_shares() -> None:
    told = choice_json(compared(replace(SEVEN, strategy=Strategy.HYBRID_SHARD), hosts=16)[0])
    assert set(told) == {
        "strategy", "tensor_parallel", "is_asked", "fits", "bytes_per_rank", "received_bytes", "scaling",
    }  # fmt: skip


def test_the_guide_to_scaling_says_what_the_plan_says() -> None:
    asked = next(one for one in compared(replace(SEVEN, batch_size=256), hosts=16) if one.is_asked)
    assert asked.bound is not None
    between = f"between {100 * asked.bound.unhidden:.0f} % and {100 * asked.bound.at_most:.0f} %"
    assert f"`full_shard` and 256 sequences a step it says {between}" in text_of("docs/training/scaling.md")
