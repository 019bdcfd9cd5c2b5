"""The two families that the loop trains, decoders and vision transformers: what differs, by shape."""

from training.model import Backbone, Transformer
from training.vision.model import VisionTransformer
from training.vision.shape import Shape, VisionShape


def model_of(shape: Shape) -> Backbone:
    """On the default device, without first values."""
    return VisionTransformer(shape) if isinstance(shape, VisionShape) else Transformer(shape)
