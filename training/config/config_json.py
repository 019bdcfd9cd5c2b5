"""Reads the config.json of Hugging Face's models; all that cannot be trained here is refused at once.

What a file does not say is as transformers has it for the family. A field that is not known here may change
what the model computes, so it is refused, unless it is switched off. What fine-tuning tools and exporters are
known to leave in a file, and transformers does not read, is left aside with a note.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from training.config.decoder_layout import CLASSES, CONFIG, LONGEST
from training.config.decoder_shape import Family, ModelShape, Rope, RopeKind
from training.config.fields import MOST_LAYERS, NOT_COMPUTED, Fields, note_once, told
from training.config.vision_layout import PREPROCESSOR
from training.config.vision_layout import shape_of as vision_shape_of
from training.config.vision_shape import Shape, VisionShape
from training.errors import ConfigError

_TRAINED_LENGTH = 4096
"""Tokens of a sequence unless the options say otherwise; models may be for far longer ones."""
_POSITIONS = {Family.LLAMA: 2048, Family.MISTRAL: 131_072, Family.QWEN2: 32_768, Family.QWEN3: 32_768}
_KV_HEADS = {Family.LLAMA: None, Family.MISTRAL: 8, Family.QWEN2: 32, Family.QWEN3: 32}
_HEAD_WIDTH = {Family.QWEN3: 128}
_WINDOW, _FIRST_WINDOWED = 4096, 28
"""Defaults of transformers' configurations."""
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
"""Fields that change nothing of what is computed of tokens."""
_QUANTISED = ("quantization_config", "quantization", "compression_config")
"""As transformers, MLX and compressed-tensors say it."""
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
"""A kind leaves alone what it does not use."""
_IGNORED_OF_ROPES = frozenset(["attn_factor"])
"""transformers reads ``attention_factor``."""


def read_shape(path: Path, *, option: str) -> Shape:
    """Of a config.json, or of the directory that it is in.

    Raises:
        ConfigError: With all that is missing, wrong or not trained here; ``option`` is the one that named it.
    """
    path = path / CONFIG if path.is_dir() else path
    config = _read_object(path, option=option)
    fields = Fields(config)
    try:
        if config.get("model_type") != VisionShape.family:
            shape: Shape = _decoder(fields)
        else:
            beside = path.parent / PREPROCESSOR
            preprocessor = _read_object(beside, option=option) if beside.exists() else {}
            shape = vision_shape_of(fields, preprocessor)
    except ConfigError as error:
        raise ConfigError([f"{CONFIG}: {one}" for one in error.problems]) from error
    if fields.ignored:
        note_once(f"{path}: not read, as in transformers: {', '.join(fields.ignored)}")
    return shape


def _read_object(path: Path, *, option: str) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError([f"{option} {path} cannot be read: {error.strerror}"]) from error
    except ValueError as error:
        raise ConfigError([f"{option} {path} is not JSON: {error}"]) from error
    if not isinstance(found, dict):
        raise ConfigError([f"{option} {path} is not the {path.name} of a model"])
    return found


def shape_of(config: Mapping[str, object]) -> ModelShape:
    """Raises ConfigError, with every mistake."""
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
    """Llama's where it is none that is known: the other fields are judged still."""
    name, classes = fields.get("model_type"), fields.get("architectures", [])
    if name not in list(Family):
        problem = "is missing" if name is None else f"{told(name)} is not trained here"
        fields.wrong("model_type", f"{problem}; one of {', '.join([*Family, VisionShape.family])} is")
        return Family.LLAMA
    family = Family(name)
    if classes and classes != [CLASSES[family]]:
        fields.wrong("architectures", f"must be {told([CLASSES[family]])}, not {told(classes)}")
    return family


def _head_width(fields: Fields, family: Family, width: int, heads: int) -> int:
    default = _HEAD_WIDTH.get(family)
    if fields.get("head_dim", default) is not None:
        found = fields.whole("head_dim", default)
    elif width % heads:
        fields.wrong("hidden_size", f"{width} does not divide by num_attention_heads {heads}")
        return 2
    else:
        found = width // heads
    if found % 2:
        fields.wrong("head_dim", f"must be even, as numbers are turned in pairs, not {found}")
    return found


def _kv_heads(fields: Fields, family: Family, heads: int) -> int:
    name = "num_key_value_heads"
    found = fields.whole(name, heads if fields.is_null(name) else _KV_HEADS[family] or heads)
    if heads % found:
        fields.wrong("num_attention_heads", f"{heads} does not divide by {name} {found}")
    return found


def _windows(fields: Fields, family: Family, layers: int) -> tuple[int, tuple[int, ...]]:
    """How far a windowed layer sees, and which layers are; 0 and none where all see everything."""
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
    """Those that ``layer_types`` names, or all from ``max_window_layers`` on."""
    first = fields.whole("max_window_layers", _FIRST_WINDOWED, at_least=0)
    kinds = fields.get("layer_types")
    if kinds is None:
        return tuple(range(first, layers)) if is_used else ()
    if not isinstance(kinds, list) or any(one not in _LAYER_TYPES for one in kinds) or len(kinds) != layers:
        fields.wrong("layer_types", f"must name each of {layers} layers as {' or '.join(_LAYER_TYPES)}")
        return ()
    windowed = tuple(layer for layer, kind in enumerate(kinds) if kind == _LAYER_TYPES[1])
    if windowed and not is_used:
        fields.wrong("layer_types", "has sliding_attention, but use_sliding_window or sliding_window is off")
    return windowed


def _rope(fields: Fields, *, positions: int, head_width: int) -> Rope:
    """In the words of transformers 4 or 5; where both are there, the older ones count, as there."""
    older, newer = fields.get("rope_scaling", {}), fields.get("rope_parameters", {})
    name, given = ("rope_scaling", older) if older else ("rope_parameters", newer)
    outside, original = fields.get("rope_theta", 10_000.0), fields.get(_ORIGINAL)
    if not isinstance(given, dict):
        fields.wrong(name, f"must be an object, not {told(given)}")
        return Rope()
    around = {} if original is None else {_ORIGINAL: original}
    inner = Fields({"rope_theta": outside, **given, **around}, within=f"{name}." * bool(given), around=fields)
    kind = _rope_kind(inner, "" if older else RopeKind.DEFAULT)
    rope = _rope_of_kind(inner, kind, positions, head_width)
    inner.fixed("partial_rotary_factor", 1)
    inner.refuse_unknown(_OF_OTHER_ROPES, ignored=_IGNORED_OF_ROPES)
    return rope


def _rope_kind(fields: Fields, default: str) -> RopeKind:
    """The plain one where it is none that is known: the other fields are judged still."""
    said = fields.get("rope_type", fields.get("type", default))
    if said in list(RopeKind):
        return RopeKind(said)
    problem = f"{told(said)} is not trained here" if said else "is missing"
    fields.wrong("rope_type", f"{problem}; one of {', '.join(RopeKind)} is")
    return RopeKind.DEFAULT


def _rope_of_kind(fields: Fields, kind: RopeKind, positions: int, head_width: int) -> Rope:
    rope = Rope(theta=fields.number("rope_theta", above=1), kind=kind)
    if kind is RopeKind.DEFAULT:
        return rope
    if (factor := fields.number("factor")) < 1:
        fields.wrong("factor", f"must be 1 or more, not {told(factor)}")
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
    fields: Fields, less: tuple[str, float | None], more: tuple[str, float | None]
) -> tuple[float, float]:
    before, after = fields.number(*less), fields.number(*more)
    if before >= after:
        fields.wrong(more[0], f"must be more than {less[0]} {told(before)}, not {told(after)}")
    return before, after


def _attention_factor(fields: Fields, factor: float) -> float:
    """As YaRN recommends (arXiv 2309.00071, 3.4), or by DeepSeek's two factors."""

    def scale(by: float) -> float:
        return 0.1 * by * math.log(factor) + 1.0

    one, other = fields.get("mscale", 0), fields.get("mscale_all_dim", 0)
    if not (one and other):
        return scale(1.0)
    return scale(fields.number("mscale")) / scale(fields.number("mscale_all_dim"))


def _refuse_others(fields: Fields) -> None:
    """After all that is known was read."""
    fields.fixed("hidden_act", "silu", "swish")
    fields.fixed("attention_dropout", 0)
    fields.fixed("partial_rotary_factor", 1)
    for name in _QUANTISED:
        if fields.get(name):
            fields.wrong(name, "is of quantised weights, which cannot be trained; take those in bf16")
    fields.refuse_unknown(_NOT_COMPUTED)
