"""Tags that are nearly ours: accepted, as any tag is, and named, since they do nothing."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.core.errors import FieldError, path_text, quoted
from trainmaster.core.request.options import READERS, TAG_PREFIX

_OUR_PREFIX = re.compile(r"^trainmaster[\s:./_-]*")
_BETWEEN_WORDS = re.compile(r"[\s_-]+")


def nearest_option(key: str) -> str | None:
    """The option whose name the key has but for case, blanks and our prefix; None: it has none."""
    return _BY_BARE_NAME.get(_bare(key))


def near_misses(body: Mapping[str, Any]) -> Iterator[FieldError]:
    """A warning for each tag that looks like an option and is none. Those below our prefix are refused."""
    for index, tag in enumerate(body.get("Tags", [])):
        key = tag["Key"]
        option = nearest_option(key)
        if option is not None and key != option and not key.lower().startswith(TAG_PREFIX):
            yield FieldError(
                field=path_text(("Tags", index, "Key")),
                message=f"{quoted(key)} is an ordinary tag, which trainmaster does not read",
                hint=f"did you mean {option}? write it exactly so",
            )


def _bare(key: str) -> str:
    return _BETWEEN_WORDS.sub("", _OUR_PREFIX.sub("", key.strip().lower()))


_BY_BARE_NAME: Mapping[str, str] = {_bare(option): option for option in READERS}
