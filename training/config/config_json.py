"""Read the config.json of Hugging Face's models, and refuse at once all that cannot be trained here.

A field that is missing has the default of transformers for the family. An unknown field may change what the
model computes, so it is refused unless it is switched off. Fields that fine-tuning tools and exporters are
known to leave behind, and that transformers does not read, are ignored with a note.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from training.config.decoder_layout import CLASSES, CONFIG, LONGEST
from training.config.decoder_shape import Family, ModelShape, Rope, RopeKind
from training.config.encoder_decoders import refusal
from training.config.fields import MOST_LAYERS, NOT_COMPUTED, Fields, note_once, read_object, value_text
from training.config.vision_layout import PREPROCESSOR
from training.config.vision_layout import shape_of as vision_shape_of
from training.config.vision_shape import Shape, VisionShape
from training.errors import ConfigError

_TRAINED_LENGTH = 4096
"""Tokens of a sequence unless the options say otherwise; models may be meant for far longer ones."""
_POSITIONS = {Family.LLAMA: 2048, Family.MISTRAL: 131_072, Family.QWEN2: 32_768, Family.QWEN3: 32_768}
_KV_HEADS = {Family.LLAMA: None, Family.MISTRAL: 8, Family.QWEN2: 32, Family.QWEN3: 32}
_HEAD_WIDTH = {Family.QWEN3: 128}
_WINDOW, _FIRST_WINDOWED = 4096, 28
"""Tokens that a windowed layer sees, and the first layer with a window: transformers' defaults."""
_LAYER_TYPES = ("full_attention", "sliding_attention")
_NOT_COMPUTED = NOT_COMPUTED | frozenset(
    [
        "use_cache",
        "pretraining_tp",
        "max_sequence_length",
        "bos_token_id",
        "eos_token_id",
        "pad_token_id",
        "unk_token_id",
        "id2label",
        "tokenizer_class",
        "unsloth_version",
        "unsloth_fixed",
    ]
)
"""Fields that do not change what is computed from tokens."""
_QUANTISED = ("quantization_config", "quantization", "compression_config")
"""Fields in which transformers, MLX and compressed-tensors describe quantised weights."""
_ORIGINAL = f"original_{LONGEST}"
_OF_OTHER_ROPES = frozenset(
    [
        "type",
        "factor",
        _ORIGINAL,
        "low_freq_factor",
        "high_freq_factor",
        "attention_factor",
        "beta_fast",
        "beta_slow",
        "mscale",
        "mscale_all_dim",
        "truncate",
        "finetuned",
    ]
)
"""Fields that some kind of rope uses: each kind ignores those of the others."""
_IGNORED_OF_ROPES = frozenset(["attn_factor"])
"""Fields that tools write and transformers does not read: it reads ``attention_factor``."""


def read_shape(path: Path, *, option: str) -> Shape:
    """Read the shape from a config.json, or from the directory that it is in.

    Args:
        path: The file or its directory.
        option: Option that named it, for messages.

    Raises:
        ConfigError: Fields are missing, wrong or not trained here; it names every one.
    """
    path = path / CONFIG if path.is_dir() else path
    config = read_object(path, option=option)
    fields = Fields(config)
    try:
        if config.get("model_type") != VisionShape.family:
            shape: Shape = _decoder(fields)
        else:
            beside = path.parent / PREPROCESSOR
            preprocessor = read_object(beside, option=option) if beside.exists() else {}
            shape = vision_shape_of(fields, preprocessor)
    except ConfigError as error:
        raise ConfigError([f"{CONFIG}: {problem}" for problem in error.problems]) from error
    if fields.ignored:
        note_once(f"{path}: not read, as in transformers: {', '.join(fields.ignored)}")
    return shape


def shape_of(config: Mapping[str, object]) -> ModelShape:
    """Return the shape of a decoder. Raises ConfigError, with every mistake."""
    return _decoder(Fields(config))


def _decoder(fields: Fields) -> ModelShape:
    family = _family(fields)
    width, heads = fields.whole("hidden_size"), fields.whole("num_attention_heads")
    layers = fields.whole("num_hidden_layers", at_most=MOST_LAYERS)
    positions = fields.whole(LONGEST, _POSITIONS[family])
    head_width = _head_width(fields, family, width, heads)
    has_bias = family in {Family.LLAMA, Family.QWEN3} and fields.truth("attention_bias")
    window, windowed = _windows(fields, family, layers)
    shape = ModelShape(
        family=family,
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=_kv_heads(fields, family, heads),
        hidden=fields.whole("intermediate_size"),
        vocabulary=fields.whole("vocab_size"),
        sequence_length=min(positions, _TRAINED_LENGTH),
        head_width=head_width,
        positions=positions,
        norm_epsilon=fields.number("rms_norm_eps", 1e-6),
        rope=_rope(fields, positions=positions, head_width=head_width),
        qkv_bias=has_bias or family is Family.QWEN2,
        output_bias=has_bias,
        feed_forward_bias=family is Family.LLAMA and fields.truth("mlp_bias"),
        head_norms=family is Family.QWEN3,
        tied_head=fields.truth("tie_word_embeddings"),
        window=window,
        windowed_layers=windowed,
    )
    _refuse_others(fields)
    if fields.problems:
        raise ConfigError(fields.problems)
    return shape


def _family(fields: Fields) -> Family:
    """Read the family; an unknown one counts as Llama, so that the other fields are checked, too."""
    name, classes = fields.get("model_type"), fields.get("architectures", [])
    if why := refusal(name):  # alone: what else it lacks of a decoder says nothing
        raise ConfigError([f"model_type {value_text(name)} {why}"])
    if name not in list(Family):
        problem = "is missing" if name is None else f"{value_text(name)} is not trained here"
        fields.wrong("model_type", f"{problem}; one of {', '.join([*Family, VisionShape.family])} is")
        return Family.LLAMA
    family = Family(name)
    if classes and classes != [CLASSES[family]]:
        fields.wrong("architectures", f"must be {value_text([CLASSES[family]])}, not {value_text(classes)}")
    return family


def _head_width(fields: Fields, family: Family, width: int, heads: int) -> int:
    default = _HEAD_WIDTH.get(family)
    if fields.get("head_dim", default) is not None:
        head_width = fields.whole("head_dim", default)
    elif width % heads:
        fields.wrong("hidden_size", f"{width} does not divide by num_attention_heads {heads}")
        return 2
    else:
        head_width = width // heads
    if head_width % 2:
        fields.wrong("head_dim", f"must be even, as numbers are turned in pairs, not {head_width}")
    return head_width


def _kv_heads(fields: Fields, family: Family, heads: int) -> int:
    name = "num_key_value_heads"
    kv_heads = fields.whole(name, heads if fields.is_null(name) else _KV_HEADS[family] or heads)
    if heads % kv_heads:
        fields.wrong("num_attention_heads", f"{heads} does not divide by {name} {kv_heads}")
    return kv_heads


def _windows(fields: Fields, family: Family, layers: int) -> tuple[int, tuple[int, ...]]:
    """Return the tokens that a windowed layer sees, and the windowed layers; 0 and none if all see all."""
    name = "sliding_window"
    if family is Family.LLAMA:
        return 0, ()
    if family is Family.MISTRAL:
        return (0, ()) if fields.is_null(name) else (fields.whole(name, _WINDOW), tuple(range(layers)))
    is_used = fields.truth(f"use_{name}") and not fields.is_null(name)
    windowed = _windowed_layers(fields, layers, is_used=is_used)
    if is_used and windowed:
        return fields.whole(name, _WINDOW), windowed
    fields.get(name)
    return 0, ()


def _windowed_layers(fields: Fields, layers: int, *, is_used: bool) -> tuple[int, ...]:
    """Return the layers that ``layer_types`` names as windowed, or all from ``max_window_layers`` on."""
    first = fields.whole("max_window_layers", _FIRST_WINDOWED, at_least=0)
    kinds = fields.get("layer_types")
    if kinds is None:
        return tuple(range(first, layers)) if is_used else ()
    if not isinstance(kinds, list) or any(kind not in _LAYER_TYPES for kind in kinds) or len(kinds) != layers:
        fields.wrong("layer_types", f"must name each of {layers} layers as {' or '.join(_LAYER_TYPES)}")
        return ()
    windowed = tuple(layer for layer, kind in enumerate(kinds) if kind == _LAYER_TYPES[1])
    if windowed and not is_used:
        fields.wrong("layer_types", "has sliding_attention, but use_sliding_window or sliding_window is off")
    return windowed


def _rope(fields: Fields, *, positions: int, head_width: int) -> Rope:
    """Read rotary positions in the words of transformers 4 or 5; of both the older count, as there."""
    older, newer = fields.get("rope_scaling", {}), fields.get("rope_parameters", {})
    name, given = ("rope_scaling", older) if older else ("rope_parameters", newer)
    outside, original = fields.get("rope_theta", 10_000.0), fields.get(_ORIGINAL)
    if not isinstance(given, dict):
        fields.wrong(name, f"must be an object, not {value_text(given)}")
        return Rope()
    around = {} if original is None else {_ORIGINAL: original}
    inner = Fields({"rope_theta": outside, **given, **around}, within=f"{name}." * bool(given), around=fields)
    kind = _rope_kind(inner, "" if older else RopeKind.DEFAULT)
    rope = _rope_of_kind(inner, kind, positions, head_width)
    inner.fixed("partial_rotary_factor", 1)
    inner.refuse_unknown(_OF_OTHER_ROPES, ignored=_IGNORED_OF_ROPES)
    return rope


def _rope_kind(fields: Fields, default: str) -> RopeKind:
    """Read the kind of rope; an unknown one counts as the default, so that other fields are checked."""
    name = fields.get("rope_type", fields.get("type", default))
    if name in list(RopeKind):
        return RopeKind(name)
    problem = f"{value_text(name)} is not trained here" if name else "is missing"
    fields.wrong("rope_type", f"{problem}; one of {', '.join(RopeKind)} is")
    return RopeKind.DEFAULT


def _rope_of_kind(fields: Fields, kind: RopeKind, positions: int, head_width: int) -> Rope:
    rope = Rope(theta=fields.number("rope_theta", above=1), kind=kind)
    if kind is RopeKind.DEFAULT:
        return rope
    if (factor := fields.number("factor")) < 1:
        fields.wrong("factor", f"must be 1 or more, not {value_text(factor)}")
    rope = replace(rope, factor=max(factor, 1.0))
    match kind:
        case RopeKind.LINEAR:
            return rope
        case RopeKind.DYNAMIC:
            if head_width == 2:  # noqa: PLR2004  its exponent is divided by head_dim - 2
                fields.wrong("rope_type", "dynamic needs heads wider than 2")
            return replace(rope, original_positions=positions)
        case RopeKind.LLAMA3:
            low, high = _ordered(fields, ("low_freq_factor", None), ("high_freq_factor", None))
            original = fields.whole(_ORIGINAL, positions)
            return replace(rope, original_positions=original, low_frequency=low, high_frequency=high)
        case RopeKind.YARN:
            slow, fast = _ordered(fields, ("beta_slow", 1.0), ("beta_fast", 32.0))
            return replace(
                rope,
                original_positions=fields.whole(_ORIGINAL, positions),
                beta_slow=slow,
                beta_fast=fast,
                truncate=fields.truth("truncate", default=True),
                attention_factor=fields.number("attention_factor", _attention_factor(fields, rope.factor)),
            )


def _ordered(
    fields: Fields, lower: tuple[str, float | None], upper: tuple[str, float | None]
) -> tuple[float, float]:
    before, after = fields.number(*lower), fields.number(*upper)
    if before >= after:
        fields.wrong(upper[0], f"must be more than {lower[0]} {value_text(before)}, not {value_text(after)}")
    return before, after


def _attention_factor(fields: Fields, factor: float) -> float:
    """Return the factor that YaRN recommends (arXiv 2309.00071, 3.4), or the one by DeepSeek's two fields."""

    def scale(by: float) -> float:
        return 0.1 * by * math.log(factor) + 1.0

    mscale, mscale_all_dim = fields.get("mscale", 0), fields.get("mscale_all_dim", 0)
    if not (mscale and mscale_all_dim):
        return scale(1.0)
    return scale(fields.number("mscale")) / scale(fields.number("mscale_all_dim"))


def _refuse_others(fields: Fields) -> None:
    """Refuse fields that change the model and are not supported; call it once all known fields were read."""
    fields.fixed("hidden_act", "silu", "swish")
    fields.fixed("attention_dropout", 0)
    fields.fixed("partial_rotary_factor", 1)
    for name in _QUANTISED:
        if fields.get(name):
            fields.wrong(name, "is of quantised weights, which cannot be trained; take those in bf16")
    fields.refuse_unknown(_NOT_COMPUTED)
