"""The lines of the log that machines read, and how they read them; no torch, as clients import this.

A metric line is `metric step=120 loss=2.345670000 lr=...`: plain ASCII, from the first rank alone. An event
line is `event {"kind":"resume","step":100}`, that of an evaluation `eval step=100 val_loss=2.456700000 ...`.
"""

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from training.errors import ConfigError

_METRIC, _EVENT, _EVAL = "metric ", "event ", "eval "
_EVAL_STEP, _EVAL_LOSS, _EVAL_TOKENS = "eval_step", "eval_loss", "eval_tokens"
_EVAL_ACCURACY = "eval_accuracy"
_LARGEST_EXPONENT = 700.0
"""The largest argument of exp that is used; a double ends at exp(709)."""
_TERA = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class StepMetrics:
    """The numbers of a metric line. Speeds and times are means over the steps since the line before."""

    step: int
    loss: float
    """Nats per token over the batch of this step, over all ranks."""
    lr: float
    grad_norm: float
    """Norm of all gradients together, before they are clipped."""
    tokens: int
    """Tokens trained on from step 1 to here, over all ranks."""
    tok_s: float
    """Tokens per second over all ranks. Like step_ms without the time that saving held the steps up."""
    tok_s_gpu: float
    """Tokens per second of one rank."""
    img_s: float | None = None
    """Images per second, over all ranks; None if the model is of texts."""
    tflops_gpu: float
    """Tera floating point operations per second that the model needs; recomputed activations do not count."""
    mfu: float | None
    """tflops_gpu in percent of the device's dense bf16 peak; None where that is not known, as on CPUs."""
    step_ms: float
    data_ms: float
    """The part of step_ms that was a wait for data."""
    mem_gib: float
    """Most GiB of the first rank's device memory in use since the start; on CPUs of its process."""
    ckpt_step: int
    """Step of the newest whole checkpoint; 0 if there is none yet."""
    ckpt_stall_ms: float
    """How long the newest save held the steps up; 0 if there is none yet."""
    goodput: float
    """Share of the time since the job's first start that was spent in steps that lasted."""
    width: int
    """Instances that train in this attempt; an elastic job has several widths over its attempts."""
    steps: int
    """Steps of the whole job, so that `step` of `steps` is its progress."""

    def line(self) -> str:
        return _METRIC + " ".join(
            f"{name}={value:{_FORMATS[name]}}" for name, value in self._items() if value is not None
        )

    def as_json(self) -> str:
        """Write all numbers unrounded; ``loss_hex`` is the loss to the last bit, as float.hex writes it."""
        known = {name: value for name, value in self._items() if value is not None}
        return json.dumps(known | {"loss_hex": self.loss.hex()})

    def _items(self) -> list[tuple[str, float | None]]:
        return [(field.name, getattr(self, field.name)) for field in fields(self)]


_FORMATS = MappingProxyType(
    {
        "step": "d",
        "loss": ".9f",
        "lr": ".6e",
        "grad_norm": ".6g",
        "tokens": "d",
        "tok_s": ".1f",
        "tok_s_gpu": ".1f",
        "img_s": ".2f",
        "tflops_gpu": ".3f",
        "mfu": ".2f",
        "step_ms": ".1f",
        "data_ms": ".1f",
        "mem_gib": ".2f",
        "ckpt_step": "d",
        "ckpt_stall_ms": ".1f",
        "goodput": ".4f",
        "width": "d",
        "steps": "d",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """The result of an evaluation: `eval step=100 val_loss=... val_perplexity=... val_tokens=...

    Val_ms=...`.
    """

    step: int
    """The step after which it was made."""
    loss: float
    """Nats per token that counts, over all ranks."""
    tokens: int
    """Tokens that count; for images, the images or their hidden patches."""
    accuracy: float | None = None
    """The share of images whose class was predicted; None if no classes are predicted."""

    @classmethod
    def carried_by(cls, carried: Mapping[str, float]) -> "Validation | None":
        """Read the newest evaluation that a checkpoint remembers; None if it remembers none."""
        if _EVAL_STEP not in carried:
            return None
        step, loss, tokens = (carried[name] for name in (_EVAL_STEP, _EVAL_LOSS, _EVAL_TOKENS))
        return cls(step=int(step), loss=loss, tokens=int(tokens), accuracy=carried.get(_EVAL_ACCURACY))

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, _LARGEST_EXPONENT))

    def line(self, *, seconds: float) -> str:
        accuracy = "" if self.accuracy is None else f"val_accuracy={self.accuracy:.6f} "
        return (
            f"{_EVAL}step={self.step} val_loss={self.loss:.9f} val_perplexity={self.perplexity:.6g} "
            f"{accuracy}val_tokens={self.tokens} val_ms={1000 * seconds:.1f}"
        )

    def carried(self) -> dict[str, float]:
        accuracy = {} if self.accuracy is None else {_EVAL_ACCURACY: self.accuracy}
        return {_EVAL_STEP: self.step, _EVAL_LOSS: self.loss, _EVAL_TOKENS: self.tokens} | accuracy


METRIC_DEFINITIONS: list[dict[str, str]] = [
    # The leading space keeps e.g. val_loss= from matching; other lines have a step= too.
    {"Name": f"train:{name}", "Regex": rf"{'metric' if name == 'step' else ''} {name}=([0-9.eE+-]+)"}
    for name in _FORMATS
    if name != "steps"  # never changes, and each metric of CloudWatch costs money
] + [
    {"Name": f"validation:{name}", "Regex": rf"eval step=.* val_{name}=([0-9.eE+-]+)"}
    for name in ("loss", "perplexity", "accuracy")
]
"""Definitions for ``metric_definitions=`` of an estimator. SageMaker makes a CloudWatch metric of each."""


def metrics_in(line: str) -> dict[str, str] | None:
    """Read the numbers of a metric line as they are printed, by name; None if it is another line."""
    if not line.startswith(_METRIC):
        return None
    return dict(word.split("=", 1) for word in line.removeprefix(_METRIC).split())


def validation_in(line: str) -> dict[str, str] | None:
    """Read the numbers of an evaluation's line as they are printed, by name; None if it is another line."""
    if not line.startswith(_EVAL):
        return None
    return dict(word.split("=", 1) for word in line.removeprefix(_EVAL).split())


class Event(StrEnum):
    """Kinds of events that happen once or occasionally, and get a line."""

    WORLD = "world"
    FLOAT8 = "float8"
    RESUME = "resume"
    CHECKPOINT = "checkpoint"
    PREEMPT = "preempt"
    PROFILE = "profile"
    DONE = "done"


def event_line(kind: Event, **details: float | str | None) -> str:
    return _EVENT + json.dumps({"kind": kind, **details}, separators=(",", ":"))


def event_in(line: str) -> dict[str, object] | None:
    """Read an event line; None if it is another line."""
    if not line.startswith(_EVENT):
        return None
    event: dict[str, object] = json.loads(line.removeprefix(_EVENT))
    return event


class LinesFile:
    """A file of lines, which is appended to, so a later attempt continues where the one before stopped.

    Each line is one write, so a kill leaves whole lines, and ranks of a host may share a file.

    Args:
        path: Where it is; its folder is made.
        option: Name of the option that asks for it, for messages.

    Raises:
        ConfigError: It cannot be written.
    """

    def __init__(self, path: Path, *, option: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise ConfigError([f"{option} {path} cannot be written: {error.strerror}"]) from error

    def add(self, line: str) -> None:
        os.write(self._file, (line + "\n").encode())

    def close(self) -> None:
        os.close(self._file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The speed of a device: dense bf16 with fp32 sums, not counting sparsity."""

    device: str
    """Words that the device's name has, as CUDA gives it."""
    tflops: float
    source: str

    @property
    def flops(self) -> float:
        """Return the floating point operations per second."""
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
    """Find a device's peak; None if it is not known: CPUs, and GPUs without bf16 matrix units (T4, V100)."""
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
    """Tokens of a step over all ranks."""
    ranks: int
    flops_per_token: float
    """Operations of a forward and a backward pass for one token, of the model alone."""
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
