"""Choose the precision of an attempt where the job leaves it open; every rank comes to the same."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch.distributed as dist

from training.config import TrainConfig
from training.config.choices import DeviceName, Precision, ReduceDtype
from training.config.contradictions import contradictions
from training.errors import ConfigError
from training.preemptible.checkpoint import CheckpointStore, Manifest, newest_manifest
from training.ranks.world import World

_NOTE = "precision"
"""Key in the notes of a checkpoint."""
_COMPUTES_BF16 = frozenset({Precision.BF16, Precision.BF16_PURE})
_CPUS_WITH_BF16 = "AMX: c7i, m7i, r7i; AVX512-BF16: c7a, m7a, r7a; Graviton3 and later"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Precision of the checkpoint that this attempt resumes from, and its step."""

    precision: Precision
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionChoice:
    precision: Precision
    """The chosen precision, never ``auto``."""
    reason: str
    warning: str
    """Text that says why bf16 is slow on a device of this job; empty where it is not, or is not used."""

    def lines(self) -> list[str]:
        """Lines for the beginning of the log."""
        lines = [f"precision: {self.precision}, {self.reason}"]
        return [*lines, f"warning: {self.warning}"] if self.warning else lines


def choose(
    wanted: Precision, *, device: DeviceName, slow: Sequence[str], kept: Kept | None
) -> PrecisionChoice:
    """Choose a precision for all ranks.

    A slow rank holds all others up, so bf16 must be fast on each of them. A resumed job keeps its precision,
    whatever it was moved to: another one would change its losses.

    Args:
        wanted: Value of the option.
        device: The kind of all ranks' devices.
        slow: What each rank's device lacks to compute bf16 fast; an empty text: nothing.
        kept: Precision of the checkpoint; None: nothing is resumed.
    """
    lacks = next((text for text in slow if text), "")
    precision: Precision
    if wanted is not Precision.AUTO:
        precision, reason = wanted, "as the job says"
    elif device is DeviceName.NEURON:
        precision, reason = Precision.BF16_PURE, "by precision auto: the only one on Trainium"
    elif kept is not None:
        precision, reason = kept.precision, f"by precision auto: as the checkpoint of step {kept.step}"
    elif lacks:
        precision, reason = Precision.FP32, f"by precision auto: {lacks}"
    else:
        precision, reason = Precision.BF16, "by precision auto: computed fast on every device of this job"
    return PrecisionChoice(precision=precision, reason=reason, warning=_warning(precision, device, lacks))


def _warning(precision: Precision, device: DeviceName, lacks: str) -> str:
    if not lacks or precision not in _COMPUTES_BF16:
        return ""
    others = f", or use an instance that has it ({_CPUS_WITH_BF16})" if device is DeviceName.CPU else ""
    return f"{lacks}, so {precision} is likely slower than fp32: set precision fp32{others}"


def settled(
    config: TrainConfig, world: World, store: CheckpointStore | None = None
) -> tuple[TrainConfig, PrecisionChoice]:
    """Replace ``auto`` by a precision. Every rank calls.

    Args:
        config: Options of the job, the same on every rank.
        world: The ranks, whose devices may differ.
        store: Store of the checkpoints that this attempt may resume from; None: it does not resume.

    Raises:
        CheckpointReadError: The store does not answer.
        ConfigError: The precision of the checkpoint contradicts an option.
    """
    slow: list[str | None] = [None] * world.size
    dist.all_gather_object(slow, world.accelerator.slow_bf16(world.device))
    newest = newest_manifest(store) if store and config.precision is Precision.AUTO else None
    choice = choose(
        config.precision,
        device=DeviceName(world.device.type),
        slow=[text or "" for text in slow],
        kept=Kept(precision=precision_of(newest), step=newest.step) if newest else None,
    )
    chosen = replace(config, precision=choice.precision)
    if choice.precision is Precision.FP32 and config.reduce_dtype is ReduceDtype.BF16:
        # What auto chose must not refuse a job that left it open.
        chosen = replace(chosen, reduce_dtype=ReduceDtype.FP32)
        choice = replace(choice, reason=f"{choice.reason}; gradients are summed in fp32, too")
    if problems := contradictions(chosen):  # a kept precision, with options that are new in this attempt
        raise ConfigError(problems)
    return chosen, choice


def noted(precision: Precision) -> dict[str, str]:
    """Return the note with which a checkpoint tells its precision to later attempts."""
    return {_NOTE: precision.value}


def precision_of(manifest: Manifest) -> Precision:
    """Return the precision that a checkpoint was trained in.

    Checkpoints of before there were notes show it only if weights are bf16. Otherwise it was bf16, the
    default of their time: a job that chose another precision chooses it again when it resumes, and does not
    come here.
    """
    if manifest.notes and _NOTE in manifest.notes:
        return Precision(manifest.notes[_NOTE])
    return Precision.BF16_PURE if manifest.guard.get("weights") == "bf16" else Precision.BF16
