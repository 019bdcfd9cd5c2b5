"""Layout of Hugging Face's vision transformers: the names of their weights, and their config.json both ways.

Source: transformers, models/vit/modeling_vit.py and configuration_vit.py. An unknown field may change what
the model computes, so it is refused, unless it is switched off.
"""

import re
from collections.abc import Mapping

from training.config.fields import MOST_LAYERS, NOT_COMPUTED, Fields, value_text
from training.config.vision_shape import CHANNELS, Pooling, VisionShape
from training.errors import ConfigError

CLASSIFIES, MASKED = "ViTForImageClassification", "ViTForMaskedImageModeling"
PREPROCESSOR = "preprocessor_config.json"
_IN_BLOCK = {
    "attention_norm": "layernorm_before",
    "attention.query": "attention.attention.query",
    "attention.key": "attention.attention.key",
    "attention.value": "attention.attention.value",
    "attention.output": "attention.output.dense",
    "feed_forward_norm": "layernorm_after",
    "feed_forward.up": "intermediate.dense",
    "feed_forward.output": "output.dense",
}
_OUTSIDE = {
    "embedding.class_token": "vit.embeddings.cls_token",
    "embedding.mask_token": "vit.embeddings.mask_token",
    "embedding.positions": "vit.embeddings.position_embeddings",
    "embedding.patches.weight": "vit.embeddings.patch_embeddings.projection.weight",
    "embedding.patches.bias": "vit.embeddings.patch_embeddings.projection.bias",
    "norm.weight": "vit.layernorm.weight",
    "norm.bias": "vit.layernorm.bias",
}
_BLOCK = re.compile(r"blocks\.(\d+)\.(.+)\.(weight|bias)")
SAME = {
    "width": "hidden_size",
    "hidden": "intermediate_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "patch": "patch_size",
    "image_size": "image_size",
    "qkv_bias": "qkv_bias",
    "norm_epsilon": "layer_norm_eps",
}
"""Fields of a shape that a config.json has with the same meaning, and their names there."""
_OF_A_HEAD = ("classifier.", "decoder.", "vit.embeddings.mask_token")
_NOT_COMPUTED = NOT_COMPUTED | {"encoder_stride", "pooler_act", "pooler_output_size"}
"""Fields that do not change the logits; the pooler belongs to another model, and is no weight of ours."""


def hf_name(name: str, shape: VisionShape) -> str:
    """Return Hugging Face's name for a parameter of ``VisionTransformer``."""
    if block := _BLOCK.fullmatch(name):
        return f"vit.encoder.layer.{block[1]}.{_IN_BLOCK[block[2]]}.{block[3]}"
    if name.startswith("head."):
        return name.replace("head", "decoder.0" if shape.masked else "classifier")
    return _OUTSIDE[name]


def hf_size(name: str, size: tuple[int, ...], shape: VisionShape) -> tuple[int, ...]:
    """Return the size of a parameter at Hugging Face: a head that predicts pixels is a convolution there."""
    return (*size, 1, 1) if shape.masked and name == "head.weight" else size


def is_weight(name: str) -> bool:
    """Tell whether a tensor of a checkpoint is one of ours; a pooler is not, as no logits depend on it."""
    return not name.startswith("vit.pooler.")


def is_of_a_task(name: str) -> bool:
    """Tell whether a tensor of a checkpoint serves only to classify or to predict pixels."""
    return name.startswith(_OF_A_HEAD)


def not_expressible(shape: VisionShape) -> list[str]:
    """Name the parts of a shape that transformers' models do not have."""
    strange = {
        "pooling by the mean": shape.pooling is not Pooling.CLASS,
        "parallel layers": shape.is_parallel,
        "norms of queries and keys": shape.head_norms,
        "norms without biases": not shape.norm_bias,
    }
    return [name for name, is_so in strange.items() if is_so]


def config_of(shape: VisionShape, *, dtype: str) -> dict[str, object]:
    """Return the config.json with which transformers computes the same as this shape.

    Args:
        shape: Shape of the model.
        dtype: Type of the exported weights, e.g. bfloat16.
    """
    assert not not_expressible(shape)
    names = {str(number): f"LABEL_{number}" for number in range(shape.classes)}
    return {
        "architectures": [MASKED if shape.masked else CLASSIFIES],
        "model_type": shape.family,
        **{theirs: getattr(shape, ours) for ours, theirs in SAME.items()},
        "num_channels": CHANNELS,
        "encoder_stride": shape.patch,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "id2label": names,
        "label2id": {name: int(number) for number, name in names.items()},
        "torch_dtype": dtype,
    }


def preprocessor_of(shape: VisionShape) -> dict[str, object]:
    """Return the preprocessor_config.json that makes the same numbers of a picture."""
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": shape.image_size, "width": shape.image_size},
        "resample": 3,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(shape.pixel_mean),
        "image_std": list(shape.pixel_deviation),
    }


def shape_of(fields: Fields, preprocessor: Mapping[str, object]) -> VisionShape:
    """Read the shape from both files; an absent one is empty. Raises ConfigError, with every mistake."""
    fields.get("model_type")
    classes = fields.get("architectures", [CLASSIFIES])
    known = [CLASSIFIES, MASKED, "ViTModel"]
    if not isinstance(classes, list) or any(name not in known for name in classes):
        fields.wrong("architectures", f"must be {value_text([CLASSIFIES])}, not {value_text(classes)}")
    shape = VisionShape(
        layers=fields.whole("num_hidden_layers", 12, at_most=MOST_LAYERS),
        width=fields.whole("hidden_size", 768),
        heads=fields.whole("num_attention_heads", 12),
        hidden=fields.whole("intermediate_size", 3072),
        patch=fields.whole("patch_size", 16),
        image_size=fields.whole("image_size", 224),
        classes=_classes(fields),
        norm_epsilon=fields.number("layer_norm_eps", 1e-12),
        qkv_bias=fields.truth("qkv_bias", default=True),
        pixel_mean=_colours(preprocessor, "image_mean", fields.problems),
        pixel_deviation=_colours(preprocessor, "image_std", fields.problems),
    )
    if shape.width % shape.heads:
        fields.wrong("hidden_size", f"{shape.width} does not divide by num_attention_heads {shape.heads}")
    if shape.image_size % shape.patch:
        fields.wrong("image_size", f"{shape.image_size} does not divide by patch_size {shape.patch}")
    fields.fixed("hidden_act", "gelu")
    fields.fixed("num_channels", CHANNELS)
    fields.fixed("hidden_dropout_prob", 0)
    fields.fixed("attention_probs_dropout_prob", 0)
    fields.refuse_unknown(_NOT_COMPUTED)
    if fields.problems:
        raise ConfigError(fields.problems)
    return shape


def _classes(fields: Fields) -> int:
    labels = fields.get("id2label")
    count = fields.whole("num_labels", 2)
    if labels is None:
        return count
    if not isinstance(labels, dict) or not labels:
        fields.wrong("id2label", f"must name the classes, not {value_text(labels)}")
        return count
    return len(labels)


def _colours(given: Mapping[str, object], name: str, problems: list[str]) -> tuple[float, float, float]:
    value = given.get(name, [0.5] * CHANNELS)
    if (
        isinstance(value, list)
        and len(value) == CHANNELS
        and all(isinstance(colour, (int, float)) and 0 < colour < 1 for colour in value)
    ):
        return float(value[0]), float(value[1]), float(value[2])
    problems.append(f"{PREPROCESSOR}: {name} must be three numbers between 0 and 1, not {value_text(value)}")
    return 0.5, 0.5, 0.5
