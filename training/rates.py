"""How fast it is: tokens and floating-point operations a second, and their share of the device's peak."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TERA = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Dense bf16 with fp32 sums, without sparsity."""

    device: str
    """Words that the device's name has, as CUDA gives it."""
    tflops: float
    source: str

    @property
    def flops(self) -> float:
        """Per second."""
        return self.tflops * _TERA


_H100 = "NVIDIA H100 Tensor Core GPU datasheet"
_H200 = "NVIDIA H200 Tensor Core GPU datasheet"
PEAKS: Sequence[Peak] = (
    # The first whose words are all in the name; datasheets that only give it with sparsity: the half.
    Peak(device="B200", tflops=2250, source="NVIDIA Blackwell datasheet (HGX B200)"),
    Peak(device="H200 NVL", tflops=835, source=_H200),
    Peak(device="H200", tflops=989, source=_H200),
    Peak(device="H100 NVL", tflops=835, source=_H100),
    Peak(device="H100 PCIe", tflops=756, source=_H100),
    Peak(device="H100", tflops=989, source=_H100),
    Peak(device="A100", tflops=312, source="NVIDIA A100 Tensor Core GPU datasheet"),
    Peak(device="L40S", tflops=362, source="NVIDIA L40S datasheet"),
    Peak(device="L4", tflops=121, source="NVIDIA L4 Tensor Core GPU datasheet"),
    Peak(device="A10G", tflops=70, source="NVIDIA A10G datasheet for Amazon EC2 G5"),
)


def peak_of(device_name: str) -> Peak | None:
    """None where no peak is known: CPUs, and GPUs without bf16 matrix units such as T4 and V100."""
    words = set(re.split(r"[ -]", device_name))
    return next((peak for peak in PEAKS if set(peak.device.split()) <= words), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    tok_s: float
    tok_s_gpu: float
    tflops_gpu: float
    mfu: float | None
    """Percent of the dense bf16 peak, whatever the precision is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    tokens_per_step: int
    """Over all ranks."""
    ranks: int
    flops_per_token: float
    """Forward and backward, of the model alone."""
    peak: Peak | None

    def speed(self, step_seconds: float) -> Speed:
        tok_s = self.tokens_per_step / step_seconds
        flops = tok_s / self.ranks * self.flops_per_token
        return Speed(
            tok_s=tok_s,
            tok_s_gpu=tok_s / self.ranks,
            tflops_gpu=flops / _TERA,
            mfu=None if self.peak is None else 100 * flops / self.peak.flops,
        )
