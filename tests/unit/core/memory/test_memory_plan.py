"""What a plan says, as JSON and as lines."""

import pytest
from trainmaster.core.memory import memory_plan
from trainmaster.core.memory.model_shapes import PRESETS
from trainmaster.core.memory.program_shapes import ActivationCheckpointing, Precision, Strategy
from trainmaster.core.memory.strategy_choice import choice_lines
from trainmaster.core.memory.training_runs import Run

SEVENTY = Run(
    shape=PRESETS["llama2-70b"], batch_size=128, activation_checkpointing=ActivationCheckpointing.FULL
)


def lines(run: Run, instances: str, name: str = "llama2-70b") -> list[str]:
    """All but the comparison of strategies, which comes last."""
    found = memory_plan.plan(name, run, memory_plan.read_instances(instances))
    told = list(memory_plan.as_lines(found))
    if found.cluster.world_size == 1:
        return told
    compared = list(choice_lines(memory_plan.strategies(found)))
    assert told[-len(compared) - 1 :] == ["", *compared]
    return told[: -len(compared) - 1]


@pytest.mark.parametrize(
    ("text", "instances"),
    [
        ("ml.p5.48xlarge=16", (("ml.p5.48xlarge", 16),)),
        ("ml.p5.48xlarge=1,ml.g5.xlarge=2", (("ml.p5.48xlarge", 1), ("ml.g5.xlarge", 2))),
        ("ml.p5.48xlarge=1 ml.g5.xlarge=2", (("ml.p5.48xlarge", 1), ("ml.g5.xlarge", 2))),
    ],
)
def test_instances_are_types_and_counts(text: str, instances: memory_plan.Instances) -> None:
    assert memory_plan.read_instances(text) == instances


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "instances: name at least one, as in ml.p5.48xlarge=16"),
        ("ml.p5.48xlarge", "instances: 'ml.p5.48xlarge' is not TYPE=COUNT, as in ml.p5.48xlarge=16"),
        ("ml.p5.48xlarge=0", "instances: 'ml.p5.48xlarge=0' is not TYPE=COUNT, as in ml.p5.48xlarge=16"),
        ("p5.48xlarge=1", "instances: 'p5.48xlarge=1' is not TYPE=COUNT, as in ml.p5.48xlarge=16"),
        ("ml.m5.large=1", "instances: ml.m5.large has no GPUs that are known here"),
        ("ml.trn1.32xlarge=1", "instances: ml.trn1.32xlarge has no GPUs that are known here"),
        ("ml.p9.large=1", "instances: ml.p9.large has no GPUs that are known here"),
    ],
)
def test_what_is_no_list_of_instances_is_told_apart(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="instances") as caught:
        memory_plan.read_instances(text)
    assert str(caught.value) == message


def test_the_numbers_of_70b_on_128_gpus() -> None:
    found = memory_plan.as_json(memory_plan.plan("llama2-70b", SEVENTY, (("ml.p5.48xlarge", 16),)))
    assert found.pop("strategies")
    assert found == {
        "params": 68_976_648_192,
        "world_size": 128,
        "bytes_per_rank": {
            "params": 2_155_520_256,
            "grads": 2_155_520_256,
            "optimizer": 4_311_040_512,
            # Two blocks of 855,654,400 and the head of 262,152,192, gathered in bf16; the gradients of a
            # block in bf16 and fp32; 4,096 tokens with 80 inputs of blocks and one block; their logits.
            "activations": 2 * (2 * 855_654_400 + 262_152_192)
            + 6 * 855_654_400
            + 4096 * (80 * 8192 * 2 + (5 * 8192 + 2 * 1024 + 4 * 28672) * 2 + (4 * 8192 + 2 + 64) * 4)
            + 4096 * 32000 * 10,
        },
        "checkpoint_bytes": 827_719_778_304,
        "fits": True,
        "headroom_bytes": 85_899_345_920 * 92 // 100 - 8_622_081_024 - 17_590_075_392,
    }


def test_what_is_in_the_host_has_a_number_of_its_own() -> None:
    run = Run(shape=PRESETS["llama2-70b"], cpu_offload=True)
    found = memory_plan.as_json(memory_plan.plan("llama2-70b", run, (("ml.p5.48xlarge", 16),)))
    assert found["host_bytes_per_rank"] == 8_622_081_024


def test_a_plan_that_fits_as_people_read_it() -> None:
    assert lines(SEVENTY, "ml.p5.48xlarge=16") == [
        "llama2-70b: 68.98B parameters on 16x ml.p5.48xlarge, 1012.74 USD an hour on demand",
        (
            "bf16, full_shard over 128 of 128 ranks, activation_checkpointing full, "
            "128 sequences of 4096 tokens a step"
        ),
        "",
        "on each GPU          GiB",
        "weights              2.0",
        "gradients            2.0",
        "optimizer            4.0",
        "a step              16.4  activations, gathered weights, logits: an estimate",
        "together            24.4",
        "usable              73.6  92 % of H100's 80.0",
        "a checkpoint         6.0  a rank, 770.9 together",
        "",
        "Fits, 49.2 GiB to spare.",
    ]


def test_a_plan_that_does_not_fit_says_by_how_much_and_what_would_do() -> None:
    run = Run(shape=PRESETS["llama2-70b"], batch_size=8)
    assert lines(run, "ml.p5.48xlarge=16")[-5:] == [
        "The program refuses batch_size 8: it does not divide by 128 ranks; 128 does.",
        "Does not fit: 80.4 GiB more are needed on each rank.",
        "What would fit:",
        "  activation_checkpointing full",
        "  cpu_offload true and activation_checkpointing selective",
    ]
    nothing = Run(shape=PRESETS["llama2-70b"])
    assert lines(nothing, "ml.g4dn.xlarge=1")[-1] == (
        "No known setting would fit: use larger GPUs or a smaller model."
    )


def test_what_the_program_refuses_for_other_reasons_is_said_too() -> None:
    run = Run(
        shape=PRESETS["tiny"],
        batch_size=12,
        accumulation=2,
        strategy=Strategy.HYBRID_SHARD,
        shard_group_size=3,
        precision=Precision.BF16_PURE,
    )
    assert lines(run, "ml.g5.48xlarge=1", name="tiny")[-3:] == [
        "The program refuses batch_size 12: it does not divide by 8 ranks and 2 parts; 16 does.",
        "The program refuses shard_group_size 3: it does not divide 8 ranks.",
        "Fits, 20.6 GiB to spare.",
    ]


def test_offloaded_state_and_an_unknown_price_are_shown() -> None:
    run = Run(shape=PRESETS["llama2-7b"], cpu_offload=True)
    shown = lines(run, "ml.p5en.48xlarge=1", name="llama2-7b")
    assert shown[0] == "llama2-7b: 6.74B parameters on 1x ml.p5en.48xlarge"
    assert "in the host         12.6  for each of 8 ranks" in shown


@pytest.mark.parametrize(
    ("instances", "precision"),
    [
        pytest.param("ml.g5.xlarge=1", Precision.BF16, id="A10G"),
        pytest.param("ml.p4d.24xlarge=1", Precision.BF16, id="A100"),
        pytest.param("ml.p5.48xlarge=1", Precision.BF16, id="H100"),
        pytest.param("ml.g4dn.xlarge=1", Precision.FP32, id="T4"),
        pytest.param("ml.p3.2xlarge=1", Precision.FP32, id="V100"),
        pytest.param("ml.p2.xlarge=1", Precision.FP32, id="K80"),
        pytest.param("ml.g5.xlarge=1,ml.g4dn.xlarge=1", Precision.FP32, id="one of two kinds without"),
    ],
)
def test_precision_auto_is_what_the_program_chooses_on_these_gpus(
    instances: str, precision: Precision
) -> None:
    run = Run(shape=PRESETS["tiny"])
    assert run.precision is Precision.AUTO
    found, written = (
        memory_plan.plan("tiny", one, memory_plan.read_instances(instances))
        for one in (run, Run(shape=PRESETS["tiny"], precision=precision))
    )
    assert found == written
    assert next(line for line in memory_plan.as_lines(found) if "full_shard" in line).startswith(precision)


@pytest.mark.parametrize("precision", [one for one in Precision if one is not Precision.AUTO])
def test_a_precision_that_is_written_counts_on_every_gpu(precision: Precision) -> None:
    found = memory_plan.plan(
        "tiny", Run(shape=PRESETS["tiny"], precision=precision), (("ml.g4dn.xlarge", 1),)
    )
    assert found.run.precision is precision
