"""Texts before they are tokenised, in pieces that are trained or not; and messages as such a text.

A tokenizer's own template writes messages, or a simple one does.

The simple one is `<|user|>`, a line feed, the message, a line feed, and so on for each role; what the
assistant says ends with the tokenizer's end token.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

END: Final = None
"""Stands in place of a text for the token that ends a document or an answer."""
ASSISTANT = "assistant"
WEIGHT = "weight"
"""Field of an answer: at 0 it is context and not trained; at 1, or if the field is not there, it is
trained."""
NEEDS_NO_READER = frozenset([WEIGHT, "role", "tool_call_id"])
"""Fields of a message that need not be written: the place of a tool's answer says which call it answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    text: str | None
    trained: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    segments: Sequence[Segment]
    is_rendered: bool = False
    """True if a template has written all special tokens; the tokenizer adds none."""


Message: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages with all their fields, and the fields beside them."""

    messages: Sequence[Message]
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Fields beside the messages that a template may read, by name: tools, documents, switches."""

    @property
    def trained(self) -> list[int]:
        """Return the numbers of the messages that are trained."""
        return [
            number
            for number, message in enumerate(self.messages)
            if message["role"] == ASSISTANT and message.get(WEIGHT) != 0
        ]


Template: TypeAlias = Callable[[Conversation], Text]
"""Writes a conversation; raises ValueError for messages it cannot write, and for fields it would leave
out."""


def simple_template(conversation: Conversation) -> Text:
    refuse_unread("", conversation.variables, read=())
    segments: list[Segment] = []
    trained = conversation.trained
    for number, message in enumerate(conversation.messages):
        refuse_unread(f"messages[{number}].", message, read=["content"])
        if not isinstance(message.get("content"), str):
            raise ValueError(f"content is {_how_no_text(message)} in messages[{number}]")  # noqa: TRY004  of one kind
        segments.append(Segment(text=f"<|{message['role']}|>\n", trained=False))
        if message["role"] == ASSISTANT:
            is_trained = number in trained
            segments.append(Segment(text=message["content"], trained=is_trained))
            segments.append(Segment(text=END, trained=is_trained))
        else:
            segments.append(Segment(text=message["content"] + "\n", trained=False))
    return Text(segments=segments)


def refuse_unread(where: str, fields: Mapping[str, Any], *, read: Collection[str]) -> None:
    """Refuse fields that would get lost.

    Raises:
        ValueError: It names the fields that hold something and are not read.
    """
    lost = [
        name for name in fields if name not in NEEDS_NO_READER and name not in read and says(fields[name])
    ]
    if lost:
        names = ", ".join(f"{where}{name}" for name in lost)
        raise ValueError(
            f"{names}: neither known here nor read by the tokenizer's chat_template, so it would be lost; "
            f"take it out, or leave it out by --ignore {' '.join(lost)}"
        )


def says(value: object) -> bool:
    """Tell whether a field has anything in it.

    Files have nulls and empty lists for fields that are not used.
    """
    return value is not None and value not in ("", [], {})


def _how_no_text(message: Message) -> str:
    return (
        "missing"
        if message.get("content") is None
        else "not a text (a tokenizer's chat_template may write it)"
    )
