"""Reads a line of JSON, or a row of parquet, as a text, a prompt with its response, or messages.

Nothing of it is dropped without a word: what is not used is refused by its name, unless the user chose to
leave it out. Beside a plain text only fields that tell where it is from are allowed, and those are not read.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.training.chat import (
    ASSISTANT,
    END,
    WEIGHT,
    Conversation,
    Message,
    Segment,
    Template,
    Text,
    refuse_unread,
    says,
)
from training.errors import DataError

MESSAGES, CHAT_ARGUMENTS = "messages", "chat_template_kwargs"
LISTS = ("tools", "documents")
"""Lists of objects beside messages; a text is read as JSON, as parquet has objects of one form only."""
_ANSWERS = ("response", "completion")
LONGEST_LINE = 2**23
"""Bytes of a text of several books. A longer line is a file that has no line feeds."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_PICTURES = re.compile("image|audio|video|file")
_FORMS = (
    'give UTF-8 text, or a .jsonl file whose lines are {"text": ...}, {"prompt": ..., "response": ...} or '
    '{"messages": [...]}, or a .parquet file with such columns'
)


def json_lines(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the lines of a file that are not blank, each with its place for messages.

    Raises:
        DataError: A line is longer than any document; no more of it is read.
    """
    number = 0
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE + 1):
            number += 1
            place = f"{path} line {number}"
            if len(line) > LONGEST_LINE:
                raise unusable(
                    place,
                    f"it is longer than {LONGEST_LINE // 2**20} MiB: each document needs a line of its own, "
                    "and a longer one is to be cut",
                )
            if line.strip():
                yield place, line


def parsed(line: bytes, place: str) -> Any:  # noqa: ANN401  what JSON is
    """Decode a line of JSON. Raises DataError if it is no JSON, or has texts that no tokenizer reads."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        problem = f"it is not text in UTF-8 ({error.reason} at byte {error.start})"
        raise unusable(place, problem, "write the file as UTF-8") from error
    if text.startswith("\ufeff"):
        raise unusable(place, "it begins with a byte order mark (BOM)", "write the file as UTF-8 without it")
    try:
        value = json.loads(text, object_pairs_hook=_object)
        problems = list(_bad_characters(value, "")) if "\\u" in text else []
    except RecursionError as error:
        raise unusable(place, "its lists and objects are nested too deeply") from error
    except ValueError as error:
        raise unusable(place, str(error)) from error
    if problems:
        raise unusable(place, problems[0], "fix what wrote it, or take it out")
    return value


def unusable(place: str, problem: str, remedy: str = _FORMS) -> DataError:
    return DataError(place=place, problem=problem, remedy=remedy)


def text_of(record: Any, template: Template, *, ignored: Collection[str] = ()) -> Text:  # noqa: ANN401  as above
    """Make the text of a record, all fields but the ``ignored`` ones of it and of its messages.

    Raises ValueError.
    """
    if not isinstance(record, dict):
        raise ValueError(f"it is {type(record).__name__}, not an object")  # noqa: TRY004  one kind of error
    fields = {name: value for name, value in record.items() if name not in ignored}
    if MESSAGES in fields:
        return template(_conversation(fields, ignored))
    if "prompt" in fields:
        response = next((name for name in _ANSWERS if name in fields), _ANSWERS[0])
        prompt = Segment(text=_string(fields, "prompt"), trained=False)
        answer = Segment(text=_string(fields, response))
        refuse_unread("", fields, read=("prompt", response))
        return Text(segments=[prompt, answer, Segment(text=END)])
    if "text" in fields:
        return Text(segments=[Segment(text=_string(fields, "text")), Segment(text=END)])
    raise ValueError(f"it has {', '.join(fields) or 'nothing'}, not text, prompt and response, or messages")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object. Raises ValueError if a name is there twice, as one of the two would get lost."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there {names.count(twice)} times in one object")
    return fields


def _bad_characters(value: Any, place: str) -> Iterator[str]:  # noqa: ANN401  what JSON is
    """Yield characters that an escape can write and no text has, each with its field."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _bad_characters(name, f"the name of a field of {place or 'the line'}")
            yield from _bad_characters(inner, f"{place}.{name}".lstrip("."))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _bad_characters(inner, f"{place}[{number}]")
    elif isinstance(value, str):
        if half := _SURROGATE.search(value):
            code = f"\\u{ord(half[0]):04x}"
            yield f"{place} has {code} at character {half.start()}, which is half of a character"
        if "\0" in value:
            yield f"{place} has \\u0000 (NUL) at character {value.index(chr(0))}"


def _string(fields: Mapping[str, Any], name: str) -> str:
    if not isinstance(fields.get(name), str):
        raise ValueError(f"{name} is {'missing' if name not in fields else 'not a text'}")  # noqa: TRY004
    text: str = fields[name]
    return text


def _conversation(fields: Mapping[str, Any], ignored: Collection[str]) -> Conversation:
    """Read the messages and the fields beside them. Raises ValueError."""
    given = fields[MESSAGES]
    if not isinstance(given, list) or not all(isinstance(message, dict) for message in given):
        raise ValueError("messages is not a list of objects")
    messages = [
        _message({name: value for name, value in message.items() if name not in ignored}, number)
        for number, message in enumerate(given)
    ]
    conversation = Conversation(messages=messages, variables=_variables(fields))
    if not any(message["role"] == ASSISTANT for message in messages):
        raise ValueError('messages has none of role "assistant": there is nothing to train')
    if not conversation.trained:
        raise ValueError('each message of role "assistant" has weight 0: there is nothing to train')
    return conversation


def _message(message: Message, number: int) -> Message:
    """Read one message. Raises ValueError if it is not one, or has a weight that is none."""
    place = f"messages[{number}]"
    role = _string(message, "role")
    content = message.get("content")
    if content is None and not any(
        says(value) for name, value in message.items() if name not in {"role", WEIGHT}
    ):
        raise ValueError(f"content is missing in {place}")
    if not isinstance(content, (str, list, dict, type(None))):
        raise ValueError(f"content is not a text in {place}")  # noqa: TRY004  one kind of error
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and _PICTURES.search(str(part.get("type"))):
            raise ValueError(
                f"{place}.content has a part of type {part['type']!r}, and only texts are trained"
            )
    weight = message.get(WEIGHT)
    if weight is not None and role != ASSISTANT:
        raise ValueError(f'{place}.{WEIGHT} is of role {role!r}: only what "assistant" says is trained')
    if weight is not None and (isinstance(weight, bool) or weight not in (0, 1)):
        raise ValueError(f"{place}.{WEIGHT} must be 0 (context, not trained) or 1, not {json.dumps(weight)}")
    return {name: value for name, value in message.items() if name != WEIGHT or value is not None}


def _variables(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Read the fields beside messages; those in chat_template_kwargs count as fields of the record itself."""
    arguments = fields.get(CHAT_ARGUMENTS)
    if isinstance(arguments, str):
        arguments = _from_text(CHAT_ARGUMENTS, arguments)
    if not isinstance(arguments, (dict, type(None))):
        raise ValueError(f"{CHAT_ARGUMENTS} is not an object")  # noqa: TRY004  one kind of error
    beside = {name: value for name, value in fields.items() if name not in {MESSAGES, CHAT_ARGUMENTS}}
    if both := sorted(beside.keys() & (arguments or {}).keys()):
        raise ValueError(f"{', '.join(both)}: stands in {CHAT_ARGUMENTS} and beside it")
    variables = {**beside, **(arguments or {})}
    for name in LISTS:
        if isinstance(variables.get(name), str):
            variables[name] = _from_text(name, variables[name])
        value = variables.get(name)
        if value is not None and not (
            isinstance(value, list) and all(isinstance(inner, dict) for inner in value)
        ):
            raise ValueError(f"{name} is not a list of objects")
    return variables


def _from_text(name: str, text: str) -> Any:  # noqa: ANN401  JSON
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is a text that is no JSON: {error}") from error
