"""Read the fields of a config.json one by one, and collect what is wrong with them."""

import json
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from training.config.reader import shown
from training.errors import ConfigError

_MOST = 10**10
"""Largest value of any number; rope_theta goes up to 10**9."""
_SHOWN = 60
"""Most characters of a value that a message shows."""
MOST_LAYERS = 10_000
NOT_COMPUTED = frozenset(
    [
        "_name_or_path",
        "_commit_hash",
        "torch_dtype",
        "dtype",
        "transformers_version",
        "initializer_range",
        "label2id",
        "return_dict",
        "output_attentions",
        "output_hidden_states",
        "chunk_size_feed_forward",
        "_attn_implementation",
        "attn_implementation",
        "is_decoder",
        "problem_type",
        "finetuning_task",
        "task_specific_params",
        "torchscript",
        "use_bfloat16",
        "tf_legacy_loss",
        "keys_to_ignore_at_inference",
        # How texts are generated; transformers 4 keeps it here.
        "bad_words_ids",
        "begin_suppress_tokens",
        "decoder_start_token_id",
        "diversity_penalty",
        "do_sample",
        "early_stopping",
        "encoder_no_repeat_ngram_size",
        "exponential_decay_length_penalty",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "length_penalty",
        "max_length",
        "max_new_tokens",
        "min_length",
        "no_repeat_ngram_size",
        "num_beam_groups",
        "num_beams",
        "num_return_sequences",
        "output_scores",
        "prefix",
        "remove_invalid_values",
        "repetition_penalty",
        "return_dict_in_generate",
        "sep_token_id",
        "suppress_tokens",
        "temperature",
        "top_k",
        "top_p",
        "typical_p",
    ]
)
"""Fields of any model's config.json that change nothing of what it computes."""
_OF_TOOLS = frozenset(
    [
        "auto_map",
        "base_model",
        "base_model_name_or_path",
        "bos_token",
        "chat_template",
        "eos_token",
        "flash_attn",
        "gradient_checkpointing",
        "is_llama_config",
        "library_name",
        "license",
        "max_seq_length",
        "model_max_length",
        "model_name",
        "neftune_noise_alpha",
        "optimum_version",
        "pad_token",
        "padding_side",
        "pipeline_tag",
        "seq_length",
        "tags",
        "tokenizer_model_max_length",
        "tokenizer_padding_side",
        "transformers.js_config",
        "unk_token",
        "use_flash_attention",
        "use_flash_attn",
        "use_gradient_checkpointing",
    ]
)
"""Fields that fine-tuning tools and exporters leave behind; transformers reads them for no family here."""
_PREFIXES_OF_TOOLS = ("_", "unsloth_")


def read_object(path: Path, *, option: str) -> dict[str, object]:
    """Read a file of JSON that has an object. Raises ConfigError with the option that named it."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError([f"{option} {path} cannot be read: {error.strerror}"]) from error
    except ValueError as error:
        raise ConfigError([f"{option} {path} is not JSON: {error}"]) from error
    if not isinstance(content, dict):
        raise ConfigError([f"{option} {path} is not the {path.name} of a model"])
    return content


class Fields:
    """Fields of one JSON object; a wrong one reads as a harmless value, so that the rest is checked, too.

    Args:
        given: The object.
        within: Its place in the file, for messages.
        around: The object around it, which collects the problems of both.

    Attributes:
        problems: Messages about fields that are wrong.
        ignored: Fields with a value that nothing reads, here or in transformers.
    """

    def __init__(
        self, given: Mapping[str, object], *, within: str = "", around: "Fields | None" = None
    ) -> None:
        self._given, self._within = given, within
        self._read: set[str] = set()
        self.problems: list[str] = [] if around is None else around.problems
        self.ignored: list[str] = [] if around is None else around.ignored

    def get(self, name: str, default: object = None) -> Any:  # noqa: ANN401  JSON
        """Return the value of a field, or the default where it is missing or null."""
        self._read.add(name)
        value = self._given.get(name)
        return default if value is None else value

    def is_null(self, name: str) -> bool:
        """Tell whether the field is there and is null."""
        return name in self._given and self._given[name] is None

    def wrong(self, name: str, problem: str) -> None:
        self.problems.append(f"{self._within}{name} {problem}")

    def whole(self, name: str, default: int | None = None, *, at_least: int = 1, at_most: int = _MOST) -> int:
        value = self.get(name, default)
        if value is None:
            self.wrong(name, "is missing")
        elif type(value) is not int or not at_least <= value <= at_most:
            self.wrong(name, f"must be a whole number from {at_least} to {at_most}, not {value_text(value)}")
        else:
            return value
        return 1

    def number(self, name: str, default: float | None = None, *, above: float = 0.0) -> float:
        value = self.get(name, default)
        if value is None:
            self.wrong(name, "is missing")
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not above < value <= _MOST:
            self.wrong(name, f"must be a number above {above:g}, not {value_text(value)}")
        else:
            return float(value)
        return above + 1

    def truth(self, name: str, *, default: bool = False) -> bool:
        value = self.get(name, default)
        if not isinstance(value, bool):
            self.wrong(name, f"must be true or false, not {value_text(value)}")
        return value is True

    def fixed(self, name: str, *allowed: object) -> None:
        """Record a problem if the field has another value than these; the first is the usual one."""
        if (value := self.get(name, allowed[0])) not in allowed:
            self.wrong(name, f"must be {value_text(allowed[0])}, not {value_text(value)}")

    def refuse_unknown(self, known: frozenset[str], *, ignored: frozenset[str] = frozenset()) -> None:
        """Record a problem for fields that were not read; call it last.

        Fields that are switched off do no harm, and neither do those that tools leave behind.

        Args:
            known: Fields that may be there without being read.
            ignored: Further fields that transformers does not read either.
        """
        rest = sorted(self._given.keys() - self._read - known)
        strange: list[str] = []
        for name in (name for name in rest if _is_on(self._given[name])):
            is_left = name in _OF_TOOLS or name in ignored or name.startswith(_PREFIXES_OF_TOOLS)
            where = self.ignored if is_left else strange
            where.append(f"{self._within}{name} {value_text(self._given[name])}")
        if strange:
            named = ", ".join(strange)
            self.problems.append(f"{named}: not known here; remove what changes nothing of the model")


@cache
def note_once(text: str) -> None:
    """Print a note once, on one rank, however often a file is read."""
    if os.environ.get("RANK", "0") == "0":
        print(f"note: {text}", file=sys.stderr, flush=True)


def value_text(value: object) -> str:
    """Render a value for a message."""
    return shown(value) if isinstance(value, str) else json.dumps(value)[:_SHOWN]


def _is_on(value: object) -> bool:
    return value is not None and value is not False and value not in ({}, [])
