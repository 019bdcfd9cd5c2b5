"""Read and write Hugging Face's files; here, the layout of a model: a decoder's or a vision transformer's."""

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
        """Return Hugging Face's name for a parameter."""
        return decoders.hf_name(ours)

    def size(self, _ours: str, size: tuple[int, ...]) -> tuple[int, ...]:
        """Return Hugging Face's size for a parameter of this size."""
        return size

    def is_weight(self, name: str, *, with_head: bool) -> bool:
        """Tell whether a tensor of Hugging Face is trained here; one of the head only ``with_head``."""
        assert with_head
        return decoders.is_weight(name)

    def is_head(self, _ours: str) -> bool:
        """Tell whether a parameter serves the task alone, so that another task begins with a new one."""
        return False

    def differences(self, theirs: Shape, *, new_head: bool) -> list[str]:
        """Describe how the computations of two models differ; their weights may have the same shapes.

        Args:
            theirs: Shape of the weights that are to be loaded.
            new_head: Whether their head is left out.
        """
        assert not new_head
        if isinstance(theirs, VisionShape):
            return [f"model_type is {theirs.family}, the model is a decoder"]
        return _differences(theirs, self.shape, decoders.SAME, left_out=_OF_NO_WEIGHT)

    def files(self, dtype: str) -> Mapping[str, Mapping[str, object]]:
        """Return the files that lie beside the weights, by name."""
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
        """Describe the differences; with a new head the classes may be others."""
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
    """Describe the fields of two shapes that differ.

    Args:
        theirs: Shape of the weights.
        ours: Shape of the model.
        names: Names of fields in a config.json.
        left_out: Fields that may differ.
    """
    compared = [attribute.name for attribute in fields(ours) if attribute.name not in left_out]
    pairs = {name: (getattr(theirs, name), getattr(ours, name)) for name in compared}
    return [
        f"{names.get(name, name)} is {_in_words(their_value)}, the model has {_in_words(our_value)}"
        for name, (their_value, our_value) in pairs.items()
        if their_value != our_value
    ]


def _in_words(value: object) -> str:
    if not isinstance(value, Rope):
        return str(value)
    usual = asdict(Rope())
    changed = [f"{name} {content}" for name, content in asdict(value).items() if content != usual[name]]
    return ", ".join(changed) or "the default"
