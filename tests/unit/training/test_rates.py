import pytest

from training.rates import PEAKS, Yardstick, peak_of


@pytest.mark.parametrize(
    ("name", "tflops"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA H200", 989),
        ("NVIDIA A100-SXM4-40GB", 312),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
        ("NVIDIA A10G", 70),
        ("NVIDIA B200", 2250),
    ],
)
def test_a_gpu_is_found_by_the_name_that_cuda_gives_it(name: str, tflops: float) -> None:
    peak = peak_of(name)
    assert peak is not None
    assert peak.tflops == tflops


@pytest.mark.parametrize("name", ["", "Tesla T4", "Tesla V100-SXM2-16GB", "NVIDIA L40", "NVIDIA A10"])
def test_an_unknown_device_has_no_peak_rather_than_another_ones(name: str) -> None:
    assert peak_of(name) is None


def test_every_peak_says_where_it_is_from() -> None:
    assert all(len(peak.source) > 10 for peak in PEAKS)


def test_speeds_follow_from_the_time_of_a_step() -> None:
    """llama-1b's 9.7 GFLOPs a token; 131,072 tokens on 8 H200s in 345.6 ms."""
    yardstick = Yardstick(
        tokens_per_step=131_072, ranks=8, flops_per_token=9.7e9, peak=peak_of("NVIDIA H200")
    )
    speed = yardstick.speed(0.3456)
    assert speed.tok_s == pytest.approx(379_259.26)
    assert speed.tok_s_gpu == pytest.approx(47_407.41)
    assert speed.tflops_gpu == pytest.approx(459.85, abs=0.01)
    assert speed.mfu == pytest.approx(46.5, abs=0.01)


def test_without_a_peak_there_is_no_mfu() -> None:
    speed = Yardstick(tokens_per_step=1024, ranks=1, flops_per_token=1e6, peak=None).speed(0.5)
    assert (speed.tok_s, speed.tflops_gpu, speed.mfu) == (2048.0, 0.002048, None)
