"""Bytes that a rank receives in a step, by hand: inside its host, and between hosts."""

from dataclasses import replace

import pytest
from trainmaster.core.memory.footprint import Cluster
from trainmaster.core.memory.model_shapes import PRESETS
from trainmaster.core.memory.program_shapes import Precision, ReduceDtype, Strategy
from trainmaster.core.memory.step_traffic import Group, Received, step_traffic
from trainmaster.core.memory.training_runs import Run

SEVEN = Run(shape=PRESETS["llama2-7b"], batch_size=128)
PARAMS = 6_738_415_616
EMBEDDING = 32_000 * 4096
HEAD = EMBEDDING + 4096


def hosts(number: int, ranks: int = 8) -> Cluster:
    return Cluster(hosts=number, ranks_per_host=ranks, memory_bytes=1)


@pytest.mark.parametrize(
    ("ranks", "stride", "group"),
    [
        pytest.param(8, 1, Group(hosts=1, on_host=8), id="a host"),
        pytest.param(16, 1, Group(hosts=2, on_host=8), id="two hosts"),
        pytest.param(4, 1, Group(hosts=1, on_host=4), id="half a host"),
        pytest.param(2, 8, Group(hosts=2, on_host=1), id="the same place on two hosts"),
        pytest.param(4, 4, Group(hosts=2, on_host=2), id="two of each host"),
        pytest.param(1, 16, Group(hosts=1, on_host=1), id="one alone"),
    ],
)
def test_ranks_of_a_group_are_so_far_apart(ranks: int, stride: int, group: Group) -> None:
    assert Group.of(ranks, stride=stride, ranks_per_host=8) == group


def test_a_host_receives_once_what_it_lacks() -> None:
    # Of 1600 bytes on 2 hosts of 8 each rank lacks 1500; each host lacks 800, 100 of them for each rank.
    assert Group(hosts=2, on_host=8).gathering(1600) == Received(inside_host=1400, between_hosts=100)
    assert Group(hosts=1, on_host=8).gathering(1600) == Received(inside_host=1400)
    assert Group(hosts=4, on_host=1).reducing(1600) == Received(between_hosts=2400)
    assert Group(hosts=1, on_host=1).gathering(1600) == Received()


def test_full_shard_gathers_twice_and_scatters_once_for_each_part() -> None:
    found = step_traffic(replace(SEVEN, accumulation=2), hosts(16))
    assert found.weights.total == pytest.approx(2 * 2 * (2 * PARAMS - HEAD) * 127 / 128)
    assert found.gradients.total == pytest.approx(2 * 4 * PARAMS * 127 / 128)
    assert found.weights.between_hosts == pytest.approx(2 * 2 * (2 * PARAMS - HEAD) * 15 / 16 / 8)
    assert (found.copies, found.activations) == (Received(), Received())


def test_copies_of_a_host_send_a_share_of_the_gradients_between_hosts_once_a_step() -> None:
    """6.7 GB, as the guide to strategies says, but for the last sixteenth."""
    run = replace(SEVEN, strategy=Strategy.HYBRID_SHARD, accumulation=2)
    found = step_traffic(run, hosts(16))
    assert found.total.between_hosts == found.copies.between_hosts == 2 * 4 * PARAMS // 8 * 15 // 16
    assert found.weights.between_hosts == found.gradients.between_hosts == 0


def test_weights_that_stay_gathered_travel_once_a_step() -> None:
    run = replace(SEVEN, strategy=Strategy.SHARD_GRAD_OP, accumulation=4)
    assert step_traffic(run, hosts(1)).weights == Received(inside_host=2 * PARAMS * 7 // 8)


def test_whole_copies_only_sum_gradients_in_what_they_are_summed_in() -> None:
    run = replace(SEVEN, strategy=Strategy.NO_SHARD)
    wide, narrow = (
        step_traffic(one, hosts(2, 1)) for one in (run, replace(run, reduce_dtype=ReduceDtype.BF16))
    )
    assert wide.total == wide.copies == Received(between_hosts=4 * PARAMS)
    assert narrow.copies == Received(between_hosts=2 * PARAMS)
    fp32 = replace(run, precision=Precision.FP32, reduce_dtype=ReduceDtype.BF16)
    assert step_traffic(fp32, hosts(2, 1)) == wide


def test_one_group_of_all_ranks_is_whole_copies_of_one_group() -> None:
    alone = step_traffic(replace(SEVEN, strategy=Strategy.TP), hosts(1))
    copies = replace(SEVEN, strategy=Strategy.NO_SHARD, tensor_parallel=8)
    assert alone == step_traffic(copies, hosts(1))
    assert alone.activations.total > 0
    assert alone.sharding == Received()


def test_a_rank_alone_receives_nothing() -> None:
    for strategy in Strategy:
        assert step_traffic(replace(SEVEN, strategy=strategy), hosts(1, 1)).total == Received()
