"""What a config.json says of rotary positions, in the words of transformers 4 and 5."""

import math
from collections.abc import Callable, Mapping

from training.interop.fields import Fields, told
from training.models.decoder_shape import Rope, RopeKind

_ORIGINAL = "original_max_position_embeddings"
_OF_OTHER_KINDS = frozenset(
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


def read_rope(fields: Fields, *, positions: int, head_width: int) -> Rope:
    """Of a whole config.json; where both spellings are there, the older one counts, as in transformers."""
    older, newer = fields.get("rope_scaling", {}), fields.get("rope_parameters", {})
    name, given = ("rope_scaling", older) if older else ("rope_parameters", newer)
    outside, original = fields.get("rope_theta", 10_000.0), fields.get(_ORIGINAL)
    if not isinstance(given, dict):
        fields.wrong(name, f"must be an object, not {told(given)}")
        return Rope()
    around: Mapping[str, object] = {} if original is None else {_ORIGINAL: original}
    inner = Fields(
        {"rope_theta": outside, **given, **around}, within=f"{name}." * bool(given), problems=fields.problems
    )
    kind = _kind(inner, name)
    rope = Rope(theta=inner.number("rope_theta", above=1))
    if kind is not None:
        rope = _READERS[kind](inner, rope.theta, positions, head_width)
    inner.fixed("partial_rotary_factor", 1)
    inner.refuse_unknown(_OF_OTHER_KINDS)
    return rope


def _kind(fields: Fields, name: str) -> RopeKind | None:
    said = fields.get(
        "rope_type", fields.get("type", RopeKind.DEFAULT.value if name != "rope_scaling" else "")
    )
    if said in list(RopeKind):
        return RopeKind(said)
    problem = f"{told(said)} is not trained here" if said else "is missing"
    fields.wrong("rope_type", f"{problem}; one of {', '.join(RopeKind)} is")
    return None


def _default(_fields: Fields, theta: float, _positions: int, _head_width: int) -> Rope:
    return Rope(theta=theta)


def _linear(fields: Fields, theta: float, _positions: int, _head_width: int) -> Rope:
    return Rope(theta=theta, kind=RopeKind.LINEAR, factor=_factor(fields))


def _dynamic(fields: Fields, theta: float, positions: int, head_width: int) -> Rope:
    if head_width == 2:  # noqa: PLR2004  its exponent is divided by head_dim - 2
        fields.wrong("rope_type", "dynamic needs heads wider than 2")
    return Rope(theta=theta, kind=RopeKind.DYNAMIC, factor=_factor(fields), original_positions=positions)


def _llama3(fields: Fields, theta: float, positions: int, _head_width: int) -> Rope:
    low, high = _ordered(fields, ("low_freq_factor", None), ("high_freq_factor", None))
    return Rope(
        theta=theta,
        kind=RopeKind.LLAMA3,
        factor=_factor(fields),
        original_positions=fields.whole(_ORIGINAL, positions),
        low_frequency=low,
        high_frequency=high,
    )


def _yarn(fields: Fields, theta: float, positions: int, _head_width: int) -> Rope:
    factor = _factor(fields)
    slow, fast = _ordered(fields, ("beta_slow", 1.0), ("beta_fast", 32.0))
    return Rope(
        theta=theta,
        kind=RopeKind.YARN,
        factor=factor,
        original_positions=fields.whole(_ORIGINAL, positions),
        beta_slow=slow,
        beta_fast=fast,
        truncate=fields.truth("truncate", default=True),
        attention_factor=fields.number("attention_factor", _attention_factor(fields, factor)),
    )


_READERS: Mapping[RopeKind, Callable[[Fields, float, int, int], Rope]] = {
    RopeKind.DEFAULT: _default,
    RopeKind.LINEAR: _linear,
    RopeKind.DYNAMIC: _dynamic,
    RopeKind.LLAMA3: _llama3,
    RopeKind.YARN: _yarn,
}


def _factor(fields: Fields) -> float:
    factor = fields.number("factor")
    if factor < 1:
        fields.wrong("factor", f"must be 1 or more, not {told(factor)}")
    return max(factor, 1.0)


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
