from benchmarks.training.fp16_range import measured
from training.config import read_config
from training.ranks.world import World


def test_bf16_keeps_the_gradients_that_fp16_loses_without_a_scale(world: World) -> None:
    """The table of docs/training/precision.md, over fewer steps."""
    options = ["--preset=tiny", "--steps=3", "--batch_size=8", "--precision=fp32", "--sequence_length=64"]
    facts = measured(read_config(options, {}), world)
    assert facts["tokens"] == 512
    for part in ("weights", "logits"):
        rows = facts[part]
        assert rows["bf16"] == {"lost": 0, "shortened": 0, "infinite": 0}
        assert rows["fp16, scale 1"]["lost"] + rows["fp16, scale 1"]["shortened"] > 0.1
        assert rows["fp16, scale 65536"]["lost"] == 0
    assert facts["dropped_steps"] == 0
