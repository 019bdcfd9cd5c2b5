"""Encoders with a decoder, such as T5: not trained here, and refused with what to do instead."""

FAMILIES = frozenset({"t5", "mt5", "umt5", "longt5", "bart", "mbart", "pegasus", "marian"})
"""Their names in transformers, which begin the names of their sizes, too: `t5-base`."""
OTHER_SCRIPT = (
    "keep the script of its own library, which four lines make preemptible: docs/training/scripts.md"
)


def refusal(name: object) -> str:
    """Say why a model of this name is refused, to stand after the name; empty if it is none of them."""
    if isinstance(name, str) and name.split("-")[0] in FAMILIES:
        return f"is an encoder with a decoder, which is not trained here: {OTHER_SCRIPT}"
    return ""
