"""Memory of the training program on each rank, by hand."""

import pytest
from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.memory.footprint import BytesPerRank, Cluster, Estimate, cluster_of, estimate
from trainmaster.core.memory.model_shapes import PRESETS, ModelShape
from trainmaster.core.memory.program_shapes import ActivationCheckpointing, Precision, ReduceDtype, Strategy
from trainmaster.core.memory.training_runs import Run, run_of
from trainmaster.core.memory.transformer_shapes import elements

GIB = 2**30
SMALL = ModelShape(
    layers=2, width=8, heads=2, kv_heads=1, hidden=16, vocabulary=10, sequence_length=4
)  # 592 parameters a block, 168 in the root


def cluster(hosts: int = 1, ranks: int = 4, memory: int = 10**9, host_memory: int | None = None) -> Cluster:
    return Cluster(hosts=hosts, ranks_per_host=ranks, memory_bytes=memory, host_memory_bytes=host_memory)


STEP = 2 * 4 * 368 + 400 + (88 + 2 * 592) * 2 + 592 * 6
"""Bytes that a step of SMALL needs on top of the state, with one sequence a rank."""


def test_a_small_model_by_hand() -> None:
    assert (SMALL.block_params, elements(SMALL.root, shards=1), SMALL.params) == (592, 168, 1352)
    found = estimate(Run(shape=SMALL, batch_size=8), cluster(hosts=2, memory=100_000))
    # Of 8 ranks the first holds of each block 1 of 8 rows of query, output and down (8 + 8 + 16 numbers),
    # 1 of 4 of key and value (8 + 8), 2 of 16 of gate and up (16 + 16), 1 of each norm: 82; of the root 2 of
    # 10 rows of embedding and head (16 + 16) and 1 of the norm: 33. In all 197, and one sequence of 4 tokens.
    # A block keeps of each token (5 * 8 + 2 * 4 + 4 * 16) * 2 + (2 * 17 + 2) * 4 = 368 bytes; logits are
    # 4 * 10 * (2 + 8) bytes; gathered are head, norm and two blocks in bf16; gradients of a block are 2
    # bytes, and 4 more on their way to their shards.
    state = BytesPerRank(params=788, grads=788, optimizer=1576, activations=STEP)
    assert STEP == 9440
    assert found == Estimate(
        params=1352,
        world_size=8,
        bytes_per_rank=state,
        host_bytes_per_rank=0,
        checkpoint_bytes=1352 * 12,
        headroom_bytes=92_000 - 788 - 788 - 1576 - 9440,
    )
    assert found.fits


def test_what_is_missing_is_a_negative_headroom() -> None:
    found = estimate(Run(shape=SMALL, batch_size=8), cluster(hosts=2, memory=10_000))
    assert (found.fits, found.headroom_bytes) == (False, 9_200 - 788 - 788 - 1576 - 9440)


@pytest.mark.parametrize(
    ("preset", "params"),
    [
        ("llama-1b", 1_261_529_088),
        ("llama2-7b", 6_738_415_616),
        ("llama2-13b", 13_015_864_320),
        ("llama2-70b", 68_976_648_192),
    ],
)
def test_known_models_have_as_many_parameters_as_their_papers_say(preset: str, params: int) -> None:
    assert PRESETS[preset].params == params


@pytest.mark.parametrize(
    ("preset", "precision", "world", "gib"),
    [
        pytest.param("llama2-7b", Precision.BF16, 1, 100, id="7B on one GPU"),
        pytest.param("llama2-7b", Precision.BF16_PURE, 1, 63, id="7B on one GPU, all bf16"),
        pytest.param("llama2-70b", Precision.BF16, 8, 128, id="70B on 8 GPUs"),
        pytest.param("llama2-70b", Precision.FP32, 128, 8, id="70B on 128 GPUs"),
    ],
)
def test_the_state_is_16_bytes_a_parameter_or_10_divided_by_the_ranks(
    preset: str, precision: Precision, world: int, gib: int
) -> None:
    found = estimate(Run(shape=PRESETS[preset], precision=precision), cluster(ranks=world)).bytes_per_rank
    assert round((found.params + found.grads + found.optimizer) / GIB) == gib


def test_a_checkpoint_is_12_bytes_a_parameter_whatever_the_ranks() -> None:
    for ranks in (1, 8):
        found = estimate(Run(shape=PRESETS["llama2-7b"]), cluster(ranks=ranks))
        assert found.checkpoint_bytes // 10**9 == 80


@pytest.mark.parametrize(
    ("strategy", "group", "numbers"),
    [
        (Strategy.FULL_SHARD, 0, 197),
        (Strategy.SHARD_GRAD_OP, 0, 197),
        (Strategy.HYBRID_SHARD, 0, 346),
        (Strategy.HYBRID_SHARD_ZERO2, 0, 346),
        (Strategy.HYBRID_SHARD, 2, 676),
        (Strategy.HYBRID_SHARD, 8, 197),
        (Strategy.NO_SHARD, 0, 1352),
    ],
)
def test_a_strategy_says_among_how_many_ranks_the_state_is_divided(
    strategy: Strategy, group: int, numbers: int
) -> None:
    run = Run(shape=SMALL, strategy=strategy, shard_group_size=group)
    found = estimate(run, cluster(hosts=2)).bytes_per_rank
    assert (found.params, found.grads, found.optimizer) == (numbers * 4, numbers * 4, numbers * 8)


@pytest.mark.parametrize("strategy", [Strategy.SHARD_GRAD_OP, Strategy.HYBRID_SHARD_ZERO2, Strategy.NO_SHARD])
def test_gathered_weights_are_those_of_two_blocks_or_all_of_them(strategy: Strategy) -> None:
    deep = ModelShape(layers=10, width=8, heads=2, kv_heads=1, hidden=16, vocabulary=10, sequence_length=4)
    few, every = (
        estimate(Run(shape=deep, strategy=one), cluster()).bytes_per_rank.activations
        for one in (Strategy.FULL_SHARD, strategy)
    )
    assert every - few == (8 * 592 + 80) * 2  # the embedding too


def test_blocks_that_are_gathered_ahead_take_room() -> None:
    deep = ModelShape(layers=10, width=8, heads=2, kv_heads=1, hidden=16, vocabulary=10, sequence_length=4)
    none, one, three, all_of_them = (
        estimate(Run(shape=deep, prefetch_blocks=count), cluster()).bytes_per_rank.activations
        for count in (0, 1, 3, 99)
    )
    assert none == one
    assert (three - one, all_of_them - one) == (2 * 592 * 2, 8 * 592 * 2)


def test_blocks_that_are_gathered_together_take_the_room_of_their_unit() -> None:
    deep = ModelShape(layers=10, width=8, heads=2, kv_heads=1, hidden=16, vocabulary=10, sequence_length=4)
    alone, just_one, two, all_of_them = (
        Run(shape=deep, min_unit_params=least) for least in (0, 592, 593, 10**9)
    )
    assert [run.blocks_of_a_unit for run in (alone, just_one, two, all_of_them)] == [1, 1, 2, 10]
    of_one, of_two = (estimate(run, cluster()).bytes_per_rank.activations for run in (alone, two))
    # Two more blocks are gathered, and gradients of one more are on their way: bf16, and summed in fp32.
    assert of_two - of_one == 2 * 592 * 2 + 592 * (2 + 4)


@pytest.mark.parametrize(
    ("strategy", "held"),
    [
        pytest.param(Strategy.FULL_SHARD, 0, id="sharded after each part"),
        pytest.param(Strategy.NO_SHARD, 1352 * 2, id="copies"),
        pytest.param(Strategy.HYBRID_SHARD, 346 * 2, id="groups"),
    ],
)
def test_sums_that_wait_for_the_last_part_are_wider_than_bf16_gradients(
    strategy: Strategy, held: int
) -> None:
    whole, parts = (
        estimate(
            Run(
                shape=SMALL,
                batch_size=count * 8,
                accumulation=count,
                precision=Precision.BF16_PURE,
                strategy=strategy,
            ),
            cluster(hosts=2),
        ).bytes_per_rank.activations
        for count in (1, 2)
    )
    assert parts - whole == held


def test_gradients_that_are_summed_in_bf16_are_half_as_large_on_their_way() -> None:
    wide, lean = (
        estimate(Run(shape=SMALL, reduce_dtype=kind), cluster()).bytes_per_rank.activations
        for kind in (ReduceDtype.FP32, ReduceDtype.BF16)
    )
    assert wide - lean == 592 * 2


@pytest.mark.parametrize(
    ("mode", "saved"),
    [
        # Of each of 2 blocks its input, 8 numbers a token; and one block whole.
        (ActivationCheckpointing.FULL, 2 * 368 - (2 * 8 * 2 + 368)),
        # Its input, attention with its sums, and what the seven matrices give.
        (ActivationCheckpointing.SELECTIVE, 2 * 368 - (2 * ((8 * 5 + 4 * 2 + 16 * 2) * 2 + 2 * 4) + 368)),
    ],
)
def test_activation_checkpointing_keeps_less_of_each_token(mode: ActivationCheckpointing, saved: int) -> None:
    plain, lean = (
        estimate(Run(shape=SMALL, activation_checkpointing=one), cluster(hosts=2)).bytes_per_rank.activations
        for one in (ActivationCheckpointing.NONE, mode)
    )
    assert plain - lean == 4 * saved


def test_offloaded_state_is_in_the_memory_of_the_host_which_its_ranks_share() -> None:
    run = Run(shape=SMALL, batch_size=8, cpu_offload=True)
    plenty = cluster(hosts=2, memory=20_000, host_memory=100_000)
    found = estimate(run, plenty)
    assert found.bytes_per_rank == BytesPerRank(params=0, grads=0, optimizer=0, activations=9440)
    assert found.host_bytes_per_rank == 197 * 16
    assert found.headroom_bytes == 18_400 - 9440  # the GPU is the narrower of the two
    scarce = estimate(run, cluster(hosts=2, memory=20_000, host_memory=12_000))
    assert scarce.headroom_bytes == 12_000 * 85 // 100 // 4 - 197 * 16
    assert not scarce.fits
    assert estimate(run, cluster(hosts=2, memory=20_000)).fits  # of a host nobody knows nothing is said


@pytest.mark.parametrize(("batch", "parts", "sequences"), [(8, 1, 1), (9, 1, 2), (16, 1, 2), (16, 2, 1)])
def test_a_rank_has_its_part_of_the_batch_rounded_up(batch: int, parts: int, sequences: int) -> None:
    run = Run(shape=SMALL, batch_size=batch, accumulation=parts)
    found = estimate(run, cluster(hosts=2)).bytes_per_rank.activations
    assert found == sequences * (2 * 4 * 368 + 400) + (88 + 2 * 592) * 2 + 592 * 6


def test_hyperparameters_are_read_as_the_sdk_and_as_plain_boto3_write_them() -> None:
    run = Run(
        shape=PRESETS["llama2-7b"],
        batch_size=64,
        accumulation=4,
        precision=Precision.BF16_PURE,
        reduce_dtype=ReduceDtype.BF16,
        strategy=Strategy.HYBRID_SHARD,
        shard_group_size=4,
        activation_checkpointing=ActivationCheckpointing.SELECTIVE,
        prefetch_blocks=0,
        cpu_offload=True,
    )
    plain = {
        "preset": "llama2-7b",
        "batch-size": "64",
        "sequence_length": "0",
        "gradient_accumulation_steps": "4",
        "precision": "bf16_pure",
        "reduce_dtype": "bf16",
        "strategy": "hybrid_shard",
        "shard_group_size": "4",
        "activation_checkpointing": "selective",
        "prefetch_blocks": "0",
        "cpu_offload": "true",
    }
    assert run_of(plain) == run
    assert run_of({key: f'"{value}"' for key, value in plain.items()}) == run


@pytest.mark.parametrize(
    ("hyperparameters", "run"),
    [
        pytest.param(
            {"activation_checkpointing": "true"},
            Run(shape=PRESETS["tiny"], activation_checkpointing=ActivationCheckpointing.FULL),
            id="yes is full",
        ),
        pytest.param({"activation_checkpointing": "False"}, Run(shape=PRESETS["tiny"]), id="no is none"),
        pytest.param(
            {"sharding_strategy": "_HYBRID_SHARD_ZERO2"},
            Run(shape=PRESETS["tiny"], strategy=Strategy.HYBRID_SHARD_ZERO2),
            id="a name of FSDP1",
        ),
        pytest.param(
            {"strategy": "NO_SHARD"}, Run(shape=PRESETS["tiny"], strategy=Strategy.NO_SHARD), id="in capitals"
        ),
    ],
)
def test_other_words_for_the_same_are_read(hyperparameters: dict[str, str], run: Run) -> None:
    assert run_of({"preset": "tiny", **hyperparameters}) == run


@pytest.mark.parametrize(
    "hyperparameters",
    [
        {},
        {"preset": "gpt-9"},
        {"preset": 5},
        {"preset": "tiny", "batch_size": "many"},
        {"preset": "tiny", "batch_size": "0"},
        {"preset": "tiny", "batch_size": "9" * 5000},
        {"preset": "tiny", "precision": "fp4"},
        {"preset": "tiny", "strategy": "my_shard"},
        {"preset": "tiny", "activation_checkpointing": "some"},
        {"preset": "tiny", "cpu_offload": "perhaps"},
        {"preset": "tiny", "shard_group_size": "-1"},
        {"preset": "[" * 100_000},
    ],
)
def test_what_is_no_run_that_we_know_is_not_judged(hyperparameters: dict[str, object]) -> None:
    assert run_of(hyperparameters) is None


def test_one_rank_a_gpu_and_the_smallest_gpu_counts() -> None:
    p5, g5 = BY_TYPE["ml.p5.48xlarge"], BY_TYPE["ml.g5.12xlarge"]
    assert cluster_of([(p5, 2), (g5, 1)]) == Cluster(
        hosts=3, ranks_per_host=4, memory_bytes=22_888 * 2**20, host_memory_bytes=192 * 2**30
    )
    assert cluster_of([(p5, 1), (BY_TYPE["ml.p2.xlarge"], 1)]).host_memory_bytes is None
