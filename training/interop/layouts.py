"""Which of Hugging Face's layouts a model has: that of decoders, or that of vision transformers."""

from collections.abc import Mapping
from typing import Protocol

from training.interop import decoder_layout as decoders
from training.interop import vision_layout as pictures
from training.models.decoder_shape import ModelShape
from training.vision.shape import Shape, VisionShape


class Layout(Protocol):
    def name(self, ours: str) -> str:
        """There, of a parameter of ours."""

    def size(self, ours: str, size: tuple[int, ...]) -> tuple[int, ...]:
        """There, of a parameter of this size."""

    def is_weight(self, name: str, *, with_head: bool) -> bool:
        """Whether a tensor there is trained here; those of the head only ``with_head``."""

    def is_head(self, ours: str) -> bool:
        """Whether a parameter is of the task, not of the model."""

    def differences(self, theirs: Shape, *, new_head: bool) -> list[str]:
        """Of a model there, from this shape."""

    def files(self, dtype: str) -> Mapping[str, Mapping[str, object]]:
        """Beside the weights, by name."""


class _Decoder:
    def __init__(self, shape: ModelShape) -> None:
        self._shape = shape

    def name(self, ours: str) -> str:
        return decoders.hf_name(ours)

    def size(self, _ours: str, size: tuple[int, ...]) -> tuple[int, ...]:
        return size

    def is_weight(self, name: str, *, with_head: bool) -> bool:
        assert with_head
        return decoders.is_weight(name)

    def is_head(self, _ours: str) -> bool:
        return False

    def differences(self, theirs: Shape, *, new_head: bool) -> list[str]:
        assert not new_head
        if isinstance(theirs, VisionShape):
            return [f"model_type is {theirs.family}, the model is a decoder"]
        return decoders.differences(theirs, self._shape)

    def files(self, dtype: str) -> Mapping[str, Mapping[str, object]]:
        return {decoders.CONFIG: decoders.config_of(self._shape, dtype=dtype)}


class _Vision:
    def __init__(self, shape: VisionShape) -> None:
        self._shape = shape

    def name(self, ours: str) -> str:
        return pictures.hf_name(ours, self._shape)

    def size(self, ours: str, size: tuple[int, ...]) -> tuple[int, ...]:
        return pictures.hf_size(ours, size, self._shape)

    def is_weight(self, name: str, *, with_head: bool) -> bool:
        return pictures.is_weight(name) and (with_head or not pictures.is_of_a_task(name))

    def is_head(self, ours: str) -> bool:
        return pictures.is_of_a_task(self.name(ours))

    def differences(self, theirs: Shape, *, new_head: bool) -> list[str]:
        if not isinstance(theirs, VisionShape):
            return [f"model_type is {theirs.family}, the model is a vision transformer"]
        return pictures.differences(theirs, self._shape, new_head=new_head)

    def files(self, dtype: str) -> Mapping[str, Mapping[str, object]]:
        return {
            decoders.CONFIG: pictures.config_of(self._shape, dtype=dtype),
            pictures.PREPROCESSOR: pictures.preprocessor_of(self._shape),
        }


def layout_of(shape: Shape) -> Layout:
    return _Vision(shape) if isinstance(shape, VisionShape) else _Decoder(shape)
