"""Tags: no reserved ones, no key twice, and options that say something."""

from collections.abc import Iterator
from difflib import get_close_matches

from trainmaster.core.request.options import READERS, TAG_PREFIX, BadOptionError
from trainmaster.core.request.validation.sections import Section, elements, text
from trainmaster.core.request_errors import Mistake, quoted

_AWS_PREFIX = "aws:"


def tag_mistakes(body: Section) -> Iterator[Mistake]:
    seen: dict[str, int] = {}
    for index, tag in elements(body, "Tags"):
        key, value = text(tag, "Key"), text(tag, "Value")
        if key is None:
            continue
        if key in seen:
            yield Mistake(
                ("Tags", index, "Key"), f"is the key of Tags[{seen[key]}] too", "give each key once"
            )
        seen.setdefault(key, index)
        yield from _reserved(key, index)
        if value is not None and key in READERS:
            yield from _option(key, value, index)


def _reserved(key: str, index: int) -> Iterator[Mistake]:
    lower = key.lower()
    path = ("Tags", index, "Key")
    if lower.startswith(_AWS_PREFIX):
        yield Mistake(path, "begins with aws:, which AWS reserves", "choose another key")
    elif lower.startswith(TAG_PREFIX) and key not in READERS:
        ours = [option for option in READERS if option.startswith(TAG_PREFIX)]
        near = get_close_matches(lower, ours, n=1)
        hint = f"did you mean {near[0]}?" if near else f"options are {', '.join(ours)}"
        yield Mistake(path, f"{quoted(key)} is no option; trainmaster: is reserved", hint)


def _option(key: str, value: str, index: int) -> Iterator[Mistake]:
    _, read = READERS[key]
    try:
        read(value)
    except BadOptionError as error:
        yield Mistake(("Tags", index, "Value"), f"of {key} {error.message}", error.hint)
