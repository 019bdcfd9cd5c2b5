"""A tokenizer's ``chat_template``, rendered as transformers' ``apply_chat_template`` does.

The package jinja2 is imported here, and only here: texts and token ids need no template.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from jinja2 import Environment, TemplateError, meta, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tools.training.chat import ASSISTANT, Conversation, Message, Segment, Text, refuse_unread, says

TOOL_USE, DEFAULT = "tool_use", "default"
"""Names of the templates of a tokenizer that has several: the first writes conversations that have tools."""
_OURS = ("messages", "add_generation_prompt")
"""Variables that this module sets."""
_BEGIN, _END = "\ufdd0", "\ufdd1"
"""Characters that no text has, put around what a template marks by ``{% generation %}``."""
_MARKS = re.compile(f"[{_BEGIN}{_END}]")


class ChatTemplate:
    """Writes conversations, and marks what is trained of them.

    A template with ``{% generation %}`` marks it itself. Any other shows what a whole conversation looks
    like, not which part the assistant says: that is what rendering up to an answer adds to rendering
    everything before it.

    Args:
        sources: One template, or several by name.
        variables: The special tokens, by name.

    Raises:
        ValueError: It is no template.
    """

    def __init__(self, sources: Mapping[str, str], *, variables: Mapping[str, str]) -> None:
        environment = _environment()
        try:
            self._written = {
                name: _Written(environment, source, variables=variables) for name, source in sources.items()
            }
        except TemplateError as error:
            raise ValueError(f"its chat_template is not one: {error}") from error

    def __call__(self, conversation: Conversation) -> Text:
        name = TOOL_USE if conversation.variables.get("tools") is not None else DEFAULT
        written = self._written.get(name) or self._written.get(DEFAULT)
        if written is None:
            raise ValueError(
                f"the tokenizer has the chat_templates {', '.join(self._written)}, none is {DEFAULT}"
            )
        rendering = _Rendering(written=written, conversation=conversation)
        refuse_unread("", conversation.variables, read=rendering.variables_read())
        whole = rendering.text()
        segments = list(rendering.marked(whole) if written.marks else rendering.compared(whole))
        rendering.refuse_lost(whole)
        return Text(segments=[segment for segment in segments if segment.text], is_rendered=True)


class _Written:
    """One template, compiled."""

    def __init__(self, environment: Environment, source: str, *, variables: Mapping[str, str]) -> None:
        parsed = environment.parse(source)
        self._template, self._variables = environment.from_string(source), variables
        self.reads = meta.find_undeclared_variables(parsed) - set(_OURS)
        self.assigns = {name.name for name in parsed.find_all(nodes.Name) if name.ctx == "store"}
        self.marks = any(
            isinstance(block.call, nodes.Call)
            and isinstance(block.call.node, nodes.ExtensionAttribute)
            and block.call.node.name == _Generation.mark.__name__
            for block in parsed.find_all(nodes.CallBlock)
        )

    def render(self, messages: Sequence[Message], given: Mapping[str, Any], *, prompts: bool) -> str:
        """Write these messages by the template. Raises ValueError if it refuses them."""
        both = {"tools": None, "documents": None, **self._variables, **given}
        try:
            return self._template.render(both | dict(zip(_OURS, (messages, prompts), strict=True)))
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError, RecursionError) as error:
            problem = str(error) or type(error).__name__
            raise ValueError(f"the chat_template refuses these messages: {problem}") from error


@dataclass(slots=True, kw_only=True)
class _Rendering:
    """One conversation under its template; it remembers which fields of the messages were read."""

    written: _Written
    conversation: Conversation
    _read: list[set[str]] = field(init=False)
    _parts_read: list[list[set[str]]] = field(init=False)
    _messages: list[Message] = field(init=False)

    def __post_init__(self) -> None:
        given = self.conversation.messages
        self._read = [set() for _ in given]
        self._parts_read = [[set() for _ in _parts(message)] for message in given]
        self._messages = [
            _watched(message, read, parts)
            for message, read, parts in zip(given, self._read, self._parts_read, strict=True)
        ]

    def text(self, messages: int | None = None, *, prompts: bool = False) -> str:
        """Return the first so many messages as the template writes them, or all."""
        return self.written.render(self._messages[:messages], self.conversation.variables, prompts=prompts)

    def variables_read(self) -> set[str]:
        """Return the names of the conversation's variables that the template reads.

        One that the template also assigns may be overwritten first: it counts if the text differs without it.
        """
        given = self.conversation.variables
        doubtful = {name for name in given if name in self.written.assigns and says(given[name])}
        counting = {name for name in self.written.reads & doubtful if self._counts(name)}
        return self.written.reads - doubtful | counting

    def _counts(self, name: str) -> bool:
        others = {other: value for other, value in self.conversation.variables.items() if other != name}
        whole = self.text(prompts=True)
        try:
            return whole != self.written.render(self._messages, others, prompts=True)
        except ValueError:
            return True  # it cannot do without

    def compared(self, whole: str) -> Iterator[Segment]:
        """Yield the whole text, in pieces that are trained or not, by what each answer adds to it."""
        done = 0
        for number in self.conversation.trained:
            begins, ends = self.text(number, prompts=True), self.text(number + 1)
            if not (whole.startswith(ends) and ends.startswith(begins)):
                raise ValueError(
                    f"the chat_template writes message {number + 1} otherwise once others follow it, so what "
                    "the assistant says cannot be marked: end each conversation with that message, or give "
                    'it "weight": 0'
                )
            yield Segment(text=whole[done : len(begins)], trained=False)
            yield Segment(text=whole[len(begins) : len(ends)])
            done = len(ends)
        yield Segment(text=whole[done:], trained=False)

    def marked(self, whole: str) -> Iterator[Segment]:
        """Yield the whole text in such pieces by the template's own marks.

        Marks of answers with weight 0 do not count.
        """
        pieces = _MARKS.split(whole)
        if (marks := _MARKS.findall(whole)) != [_BEGIN, _END] * (len(marks) // 2):
            raise ValueError(
                "the chat_template has {% generation %} inside another, or changes its text later"
            )
        untrained = self._marks_without_weight()
        for at, text in enumerate(pieces):
            yield Segment(text=text, trained=at % 2 == 1 and at // 2 not in untrained)
        if len(untrained) >= len(marks) // 2:
            raise ValueError(
                "the chat_template marks nothing by {% generation %} that has a weight: nothing to train"
            )

    def _marks_without_weight(self) -> set[int]:
        """Return the numbers of the marks that are in answers with weight 0."""
        trained = self.conversation.trained
        answers = [
            at for at, message in enumerate(self.conversation.messages) if message["role"] == ASSISTANT
        ]
        return {
            mark
            for at in answers
            if at not in trained
            for mark in range(self._count(at), self._count(at + 1))
        }

    def _count(self, messages: int) -> int:
        return self.text(messages).count(_BEGIN) if messages else 0

    def refuse_lost(self, whole: str) -> None:
        """Refuse fields that the template did not read, once all is rendered. Raises ValueError."""
        for number, message in enumerate(self.conversation.messages):
            refuse_unread(place := f"messages[{number}].", message, read=self._read[number])
            content = message.get("content")
            for at, (part, read) in enumerate(zip(_parts(message), self._parts_read[number], strict=True)):
                refuse_unread(f"{place}content[{at}].", part, read={*read, "type"})
            if isinstance(content, (list, dict)) and says(content) and repr(content) in whole:
                raise ValueError(
                    f"{place}content is no text, and the chat_template writes it as Python prints it: "
                    "give it as one text"
                )


class _Watched(dict[str, Any]):
    """An object that remembers which of its fields were read; a template takes it for any other."""

    __slots__ = ("_read",)

    def __init__(self, given: Mapping[str, Any], read: set[str]) -> None:
        super().__init__(given)
        self._read = read

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  JSON
        self._read.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._read.add(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401  JSON
        self._read.add(name)
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        self._read.update(super().keys())
        return super().__iter__()

    def keys(self) -> Any:  # noqa: ANN401  a view
        self._read.update(super().keys())
        return super().keys()

    def values(self) -> Any:  # noqa: ANN401  a view
        self._read.update(super().keys())
        return super().values()

    def items(self) -> Any:  # noqa: ANN401  a view
        self._read.update(super().keys())
        return super().items()

    def __repr__(self) -> str:
        self._read.update(super().keys())
        return super().__repr__()


def _watched(message: Message, read: set[str], parts: Sequence[set[str]]) -> Message:
    """Watch a message, and each part of its content, where that is a list of objects."""
    if not parts:
        return _Watched(message, read)
    content = [_Watched(part, seen) for part, seen in zip(_parts(message), parts, strict=True)]
    return _Watched({**message, "content": content}, read)


def _parts(message: Message) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return content
    return ()


class _Generation(Extension):
    """Marks what the assistant says: ``{% generation %} ... {% endgeneration %}``."""

    tags = {"generation"}  # noqa: RUF012  as the library has it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method(self.mark.__name__), [], [], body).set_lineno(line)

    def mark(self, caller: Callable[[], str]) -> str:
        return f"{_BEGIN}{caller()}{_END}"


def _environment() -> Environment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    return environment


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _to_json(value: Any, **options: Any) -> str:  # noqa: ANN401
    """Write JSON that leaves out the escapes that HTML would need."""
    return json.dumps(value, **{"ensure_ascii": False, **options})
