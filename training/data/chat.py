"""Texts before they are tokenised, in pieces that are trained or not; and messages as such a text.

A tokenizer's own template writes messages, or a simple one does.

The simple one is `<|user|>`, a line feed, the message, a line feed, and so on for each role; what the
assistant says ends with the tokenizer's end token.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn, TypeAlias

END: Final = None
"""Instead of a text: the token that ends a document or an answer."""
ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    text: str | None
    trained: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    segments: Sequence[Segment]
    is_rendered: bool = False
    """A template has written all special tokens; the tokenizer adds none."""


Messages: TypeAlias = Sequence[Mapping[str, str]]
Template: TypeAlias = Callable[[Messages], Text]
"""Raises ValueError for messages that it cannot write."""


def simple_template(messages: Messages) -> Text:
    found: list[Segment] = []
    for one in messages:
        found.append(Segment(text=f"<|{one['role']}|>\n", trained=False))
        if one["role"] == ASSISTANT:
            found += [Segment(text=one["content"]), Segment(text=END)]
        else:
            found.append(Segment(text=one["content"] + "\n", trained=False))
    return Text(segments=found)


def jinja_template(source: str, *, variables: Mapping[str, str]) -> Template:
    """Of a tokenizer's ``chat_template``, as transformers renders it.

    The template says what a whole conversation looks like, not which part the assistant says. That is what
    rendering up to a turn of the assistant adds to rendering everything before it.
    """
    from jinja2 import TemplateError  # noqa: PLC0415  texts and token ids do without it
    from jinja2.ext import loopcontrols  # noqa: PLC0415
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415

    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = refuse
    try:
        compiled = environment.from_string(source)
    except TemplateError as error:
        raise ValueError(f"its chat_template is not one: {error}") from error

    def rendered(messages: Messages, *, prompts: bool) -> str:
        try:
            return compiled.render(
                messages=messages, add_generation_prompt=prompts, tools=None, documents=None, **variables
            )
        except (TemplateError, TypeError) as error:
            raise ValueError(f"the chat_template refuses these messages: {error}") from error

    return partial(_marked, rendered)


def _marked(rendered: Callable[..., str], messages: Messages) -> Text:
    found: list[Segment] = []
    whole, done = rendered(messages, prompts=False), 0
    for number, one in enumerate(messages):
        if one["role"] != ASSISTANT:
            continue
        begins = rendered(messages[:number], prompts=True)
        ends = rendered(messages[: number + 1], prompts=False)
        if not (whole.startswith(ends) and ends.startswith(begins)):
            raise ValueError(
                f"the chat_template writes message {number + 1} otherwise once others follow it, so what "
                "the assistant says cannot be marked: end each conversation with that message"
            )
        found += [
            Segment(text=whole[done : len(begins)], trained=False),
            Segment(text=whole[len(begins) : len(ends)]),
        ]
        done = len(ends)
    found.append(Segment(text=whole[done:], trained=False))
    return Text(segments=found, is_rendered=True)


def _to_json(value: Any, **options: Any) -> str:  # noqa: ANN401
    """As JSON, without the escapes that HTML would need."""
    return json.dumps(value, **{"ensure_ascii": False, **options})
