"""What would let a run fit that does not."""

import pytest
from trainmaster.core.memory.accelerators import BY_TYPE
from trainmaster.core.memory.footprint import Cluster, cluster_of, estimate
from trainmaster.core.memory.memory_remedies import remedies, remedy
from trainmaster.core.memory.model_shapes import PRESETS
from trainmaster.core.memory.program_shapes import ActivationCheckpointing, Precision, Strategy
from trainmaster.core.memory.training_runs import Run

FULL = ActivationCheckpointing.FULL
SEVEN, SEVENTY = PRESETS["llama2-7b"], PRESETS["llama2-70b"]


def cluster(instance_type: str, hosts: int) -> Cluster:
    return cluster_of([(BY_TYPE[instance_type], hosts)])


@pytest.mark.parametrize(
    ("run", "hosts", "instance_type", "text"),
    [
        pytest.param(
            Run(shape=SEVEN, batch_size=32),
            1,
            "ml.p5.48xlarge",
            "activation_checkpointing selective",
            id="some fewer activations",
        ),
        pytest.param(
            Run(shape=SEVEN, batch_size=64),
            1,
            "ml.p5.48xlarge",
            "activation_checkpointing full",
            id="fewer activations",
        ),
        pytest.param(
            Run(shape=SEVEN, strategy=Strategy.NO_SHARD, activation_checkpointing=FULL),
            1,
            "ml.p5.48xlarge",
            "strategy full_shard",
            id="more shards",
        ),
        pytest.param(
            Run(
                shape=SEVEN, strategy=Strategy.HYBRID_SHARD, shard_group_size=1, activation_checkpointing=FULL
            ),
            1,
            "ml.p5.48xlarge",
            "strategy full_shard without shard_group_size",
            id="more shards than a group has",
        ),
        pytest.param(
            Run(shape=SEVEN, batch_size=256, activation_checkpointing=FULL),
            1,
            "ml.p5.48xlarge",
            "gradient_accumulation_steps 32",
            id="the same batch in parts",
        ),
        pytest.param(
            Run(shape=SEVEN, batch_size=250, activation_checkpointing=FULL),
            1,
            "ml.p5.48xlarge",
            "batch_size 8",
            id="a smaller batch, where this one cannot be shared anyway",
        ),
        pytest.param(
            Run(shape=SEVENTY, batch_size=192, activation_checkpointing=FULL),
            1,
            "ml.p5.48xlarge",
            "3 instances with gradient_accumulation_steps 8",
            id="more instances and something else",
        ),
        pytest.param(
            Run(shape=SEVENTY, batch_size=16, activation_checkpointing=FULL),
            2,
            "ml.p5.48xlarge",
            "3 instances with batch_size 24",
            id="more instances and a batch that their ranks can share",
        ),
        pytest.param(Run(shape=SEVENTY), 1, "ml.g4dn.xlarge", None, id="nothing"),
    ],
)
def test_the_mildest_change_that_would_do(run: Run, hosts: int, instance_type: str, text: str | None) -> None:
    small = cluster(instance_type, hosts)
    assert not estimate(run, small).fits
    assert remedy(run, small) == text


def test_each_kind_of_change_has_its_line() -> None:
    run = Run(shape=SEVENTY, batch_size=16, activation_checkpointing=FULL)
    assert remedies(run, cluster("ml.p5.48xlarge", 2)) == (
        "3 instances with batch_size 24",
        "precision bf16_pure",
        "cpu_offload true",
    )


def test_what_is_chosen_already_is_not_advised() -> None:
    run = Run(shape=SEVENTY, precision=Precision.BF16_PURE, cpu_offload=True, activation_checkpointing=FULL)
    assert all(
        "precision" not in text and "cpu" not in text for text in remedies(run, cluster("ml.g5.48xlarge", 1))
    )


def test_state_of_copies_cannot_be_offloaded_without_being_sharded() -> None:
    run = Run(shape=SEVENTY, strategy=Strategy.NO_SHARD, activation_checkpointing=FULL)
    assert "cpu_offload true and strategy full_shard" in remedies(run, cluster("ml.p5.48xlarge", 1))


def test_what_contains_a_milder_change_that_does_alone_is_not_advised() -> None:
    run = Run(shape=SEVENTY, batch_size=128)
    assert remedies(run, cluster("ml.p5.48xlarge", 16)) == (
        "activation_checkpointing full",
        "cpu_offload true and activation_checkpointing selective",
    )
