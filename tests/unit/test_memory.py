"""Memory of the training program on each rank, by hand."""

import pytest
from trainmaster.accelerators import BY_TYPE
from trainmaster.memory import BytesPerRank, Cluster, Estimate, cluster_of, estimate, remedy
from trainmaster.training_runs import PRESETS, ModelShape, Precision, Run, Strategy, run_of

GIB = 2**30
SMALL = ModelShape(
    layers=2, width=8, heads=2, kv_heads=1, hidden=16, vocabulary=10, sequence_length=4
)  # 592 parameters a block, 168 in the root


def cluster(hosts: int = 1, ranks: int = 4, memory: int = 10**9) -> Cluster:
    return Cluster(hosts=hosts, ranks_per_host=ranks, memory_bytes=memory)


def test_a_small_model_by_hand() -> None:
    assert (SMALL.block_params, SMALL.root_params, SMALL.params) == (592, 168, 1352)
    found = estimate(Run(shape=SMALL, batch_size=8), cluster(hosts=2, memory=100_000))
    # Of 8 ranks each holds 169 parameters and one sequence of 4 tokens. A block keeps of each token
    # (5 * 8 + 2 * 4 + 4 * 16) * 2 + (2 * 17 + 2) * 4 = 368 bytes; logits are 4 * 10 * (2 + 8) bytes; gathered
    # are the root and two blocks in bf16.
    step = 2 * 4 * 368 + 400 + 1352 * 2
    state = BytesPerRank(params=676, grads=676, optimizer=1352, activations=step)
    assert found == Estimate(
        params=1352,
        world_size=8,
        bytes_per_rank=state,
        checkpoint_bytes=1352 * 12,
        fits=True,
        headroom_bytes=92_000 - 676 - 676 - 1352 - step,
    )


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
    ("strategy", "shards"),
    [
        (Strategy.FULL_SHARD, 8),
        (Strategy.SHARD_GRAD_OP, 8),
        (Strategy.HYBRID_SHARD, 4),
        (Strategy.HYBRID_SHARD_ZERO2, 4),
        (Strategy.NO_SHARD, 1),
    ],
)
def test_a_strategy_says_among_how_many_ranks_the_state_is_divided(strategy: Strategy, shards: int) -> None:
    found = estimate(Run(shape=SMALL, strategy=strategy), cluster(hosts=2)).bytes_per_rank
    assert (found.params, found.grads, found.optimizer) == (
        1352 // shards * 4,
        1352 // shards * 4,
        1352 // shards * 8,
    )


def test_gathered_weights_are_those_of_two_blocks_or_all_of_them() -> None:
    deep = ModelShape(layers=10, width=8, heads=2, kv_heads=1, hidden=16, vocabulary=10, sequence_length=4)
    few, every = (
        estimate(Run(shape=deep, strategy=strategy), cluster()).bytes_per_rank.activations
        for strategy in (Strategy.FULL_SHARD, Strategy.SHARD_GRAD_OP)
    )
    assert every - few == 8 * 592 * 2


def test_activation_checkpointing_keeps_the_inputs_of_blocks_and_one_block() -> None:
    plain, lean = (
        estimate(Run(shape=SMALL, activation_checkpointing=on), cluster(hosts=2)).bytes_per_rank.activations
        for on in (False, True)
    )
    assert plain - lean == 2 * 4 * 368 - (2 * 4 * 8 * 2 + 4 * 368)


@pytest.mark.parametrize(("batch", "parts", "sequences"), [(8, 1, 1), (9, 1, 2), (16, 1, 2), (16, 2, 1)])
def test_a_rank_has_its_part_of_the_batch_rounded_up(batch: int, parts: int, sequences: int) -> None:
    run = Run(shape=SMALL, batch_size=batch, accumulation=parts)
    found = estimate(run, cluster(hosts=2)).bytes_per_rank.activations
    assert found == sequences * (2 * 4 * 368 + 400) + 1352 * 2


def test_hyperparameters_are_read_as_the_sdk_and_as_plain_boto3_write_them() -> None:
    run = Run(
        shape=PRESETS["llama2-7b"],
        batch_size=64,
        accumulation=4,
        precision=Precision.BF16_PURE,
        strategy=Strategy.HYBRID_SHARD,
        activation_checkpointing=True,
    )
    plain = {
        "preset": "llama2-7b",
        "batch-size": "64",
        "gradient_accumulation_steps": "4",
        "precision": "bf16_pure",
        "strategy": "hybrid_shard",
        "activation_checkpointing": "true",
    }
    assert run_of(plain) == run
    assert run_of({key: f'"{value}"' for key, value in plain.items()}) == run


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
        {"preset": "[" * 100_000},
    ],
)
def test_what_is_no_run_that_we_know_is_not_judged(hyperparameters: dict[str, object]) -> None:
    assert run_of(hyperparameters) is None


def test_one_rank_a_gpu_and_the_smallest_gpu_counts() -> None:
    p5, g5 = BY_TYPE["ml.p5.48xlarge"], BY_TYPE["ml.g5.12xlarge"]
    assert cluster_of([(p5, 2), (g5, 1)]) == Cluster(hosts=3, ranks_per_host=4, memory_bytes=22_888 * 2**20)


@pytest.mark.parametrize(
    ("run", "hosts", "instance_type", "text"),
    [
        pytest.param(
            Run(shape=PRESETS["llama2-7b"], batch_size=32),
            1,
            "ml.p5.48xlarge",
            "activation_checkpointing true",
            id="fewer activations",
        ),
        pytest.param(
            Run(shape=PRESETS["llama2-7b"], strategy=Strategy.NO_SHARD, activation_checkpointing=True),
            1,
            "ml.p5.48xlarge",
            "strategy full_shard",
            id="more shards",
        ),
        pytest.param(
            Run(shape=PRESETS["llama2-7b"], batch_size=256, activation_checkpointing=True),
            1,
            "ml.p5.48xlarge",
            "batch_size 8",
            id="a smaller batch",
        ),
        pytest.param(
            Run(shape=PRESETS["llama2-70b"], batch_size=16, activation_checkpointing=True),
            2,
            "ml.p5.48xlarge",
            "3 instances",
            id="more instances",
        ),
        pytest.param(Run(shape=PRESETS["llama2-70b"]), 1, "ml.g4dn.xlarge", None, id="nothing"),
    ],
)
def test_the_smallest_change_that_would_do(
    run: Run, hosts: int, instance_type: str, text: str | None
) -> None:
    small = cluster_of([(BY_TYPE[instance_type], hosts)])
    assert not estimate(run, small).fits
    assert remedy(run, small) == text
