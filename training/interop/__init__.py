"""Hugging Face's files; here, which layout a model has: that of decoders, or of vision transformers."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TypeAlias

from training.config import decoder_layout as decoders
from training.config import vision_layout as pictures
from training.config.decoder_shape import ModelShape, Rope
from training.config.vision_shape import Shape, VisionShape

_OF_NO_WEIGHT = ("family", "positions", "sequence_length")
_OF_THE_TASK = ("classes", "masked")


@dataclass(frozen=True, slots=True)
class _Decoder:
    shape: ModelShape

    def name(self, ours: str) -> str:
        """There, of a parameter of ours."""
        return decoders.hf_name(ours)

    def size(self, _ours: str, size: tuple[int, ...]) -> tuple[int, ...]:
        """There, of a parameter of this size."""
        return size

    def is_weight(self, name: str, *, with_head: bool) -> bool:
        """Whether a tensor there is trained here; those of the head only ``with_head``."""
        assert with_head
        return decoders.is_weight(name)

    def is_head(self, _ours: str) -> bool:
        """Whether a parameter is of the task, not of the model."""
        return False

    def differences(self, theirs: Shape, *, new_head: bool) -> list[str]:
        """Of what one computes and the other does not. Their weights may have the same shapes."""
        assert not new_head
        if isinstance(theirs, VisionShape):
            return [f"model_type is {theirs.family}, the model is a decoder"]
        return _differences(theirs, self.shape, decoders.SAME, left_out=_OF_NO_WEIGHT)

    def files(self, dtype: str) -> Mapping[str, Mapping[str, object]]:
        """Beside the weights, by name."""
        return {decoders.CONFIG: decoders.config_of(self.shape, dtype=dtype)}


@dataclass(frozen=True, slots=True)
class _Vision:
    shape: VisionShape

    def name(self, ours: str) -> str:
        return pictures.hf_name(ours, self.shape)

    def size(self, ours: str, size: tuple[int, ...]) -> tuple[int, ...]:
        return pictures.hf_size(ours, size, self.shape)

    def is_weight(self, name: str, *, with_head: bool) -> bool:
        return pictures.is_weight(name) and (with_head or not pictures.is_of_a_task(name))

    def is_head(self, ours: str) -> bool:
        return pictures.is_of_a_task(self.name(ours))

    def differences(self, theirs: Shape, *, new_head: bool) -> list[str]:
        """With a new head the classes may be others."""
        if not isinstance(theirs, VisionShape):
            return [f"model_type is {theirs.family}, the model is a vision transformer"]
        other_task = new_head or theirs.masked or self.shape.masked
        return _differences(theirs, self.shape, pictures.SAME, left_out=_OF_THE_TASK if other_task else ())

    def files(self, dtype: str) -> Mapping[str, Mapping[str, object]]:
        return {
            decoders.CONFIG: pictures.config_of(self.shape, dtype=dtype),
            pictures.PREPROCESSOR: pictures.preprocessor_of(self.shape),
        }


Layout: TypeAlias = _Decoder | _Vision


def layout_of(shape: Shape) -> Layout:
    return _Vision(shape) if isinstance(shape, VisionShape) else _Decoder(shape)


def _differences(
    theirs: Shape, ours: Shape, names: Mapping[str, str], *, left_out: Collection[str]
) -> list[str]:
    """``names``: of a shape's fields, as a config.json has them."""
    compared = [one.name for one in fields(ours) if one.name not in left_out]
    pairs = {name: (getattr(theirs, name), getattr(ours, name)) for name in compared}
    return [
        f"{names.get(name, name)} is {_in_words(one)}, the model has {_in_words(other)}"
        for name, (one, other) in pairs.items()
        if one != other
    ]


def _in_words(value: object) -> str:
    if not isinstance(value, Rope):
        return str(value)
    changed = [f"{name} {one}" for name, one in asdict(value).items() if one != getattr(Rope(), name)]
    return ", ".join(changed) or "the default"
