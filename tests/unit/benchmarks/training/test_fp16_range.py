import torch

from benchmarks.training.fp16_range import FIRST_SCALE, GROWTH_STEPS, Kept, dropped_steps


def test_what_a_type_keeps_is_counted_exactly() -> None:
    """The least number of fp16 is 2**-24, and the least with all digits 2**-14."""
    gradients = torch.tensor([0.0, 1.0, 2.0**-14, 2.0**-15, 2.0**-24, 2.0**-26, 1e5])
    assert Kept.of(gradients, torch.float16) == Kept(lost=1 / 6, shortened=2 / 6, infinite=1 / 6)
    assert Kept.of(gradients, torch.bfloat16) == Kept(lost=0, shortened=0, infinite=0)


def test_a_scale_moves_what_is_small_into_the_range_and_what_is_large_out_of_it() -> None:
    gradients = torch.tensor([2.0**-26, 1.0])
    assert Kept.of(gradients, torch.float16, scale=FIRST_SCALE) == Kept(lost=0, shortened=0, infinite=0.5)


def test_the_scaler_halves_until_nothing_is_infinite_and_tries_again_after_its_steps() -> None:
    assert dropped_steps([0.5] * 10) == 0
    assert dropped_steps([2.0] * 10) == 2  # 65536 and 32768: 65536 is above the largest number, 65504
    assert dropped_steps([2.0] * (GROWTH_STEPS + 12)) == 3
