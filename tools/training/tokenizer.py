"""A tokenizer.json as the library `tokenizers` reads it, and what tokenizer_config.json beside it adds."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.training.chat import Segment, Template, Text
from tools.training.documents import Document
from training.errors import ConfigError, DataError, MissingPackageError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_FILE, _CONFIG, _TEMPLATE = "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"
_NAMED_TEMPLATES = "additional_chat_templates"
_SPECIAL = tuple(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))


class FileTokenizer:
    """Tokenises by a file of the user's; nothing is downloaded.

    Args:
        path: A tokenizer.json, or the folder that has it.
        end: The token that ends a document, as text; None for the ``eos_token`` of tokenizer_config.json.

    Raises:
        MissingPackageError: The library, or that for chat templates, is not installed.
        DataError: The files are not there or cannot be read.
        ConfigError: There is no end token.
    """

    def __init__(self, path: Path, *, end: str | None) -> None:
        if find_spec("tokenizers") is None:
            raise MissingPackageError(what="corpora of a tokenizer.json", packages=["tokenizers"])
        file = path / _FILE if path.is_dir() else path
        self._file, self._tokenizer = file, _read(file)
        special, templates = _config_beside(file)
        self.vocabulary = 1 + max(self._tokenizer.get_vocab(with_added_tokens=True).values())
        self.end = self._number(end or special.get("eos_token"))
        self.pad = self._number(special["pad_token"]) if "pad_token" in special else self.end
        self.template = self._template(templates, special)

    def encoded(self, texts: Sequence[Text]) -> list[Document]:
        documents = [list(_runs(text.segments)) for text in texts]
        runs = [
            # What begins a document gets what the tokenizer puts there, unless a template has written that.
            (run, number == 0 and not text.is_rendered)
            for text, document in zip(texts, documents, strict=True)
            for number, run in enumerate(document)
        ]
        by_kind = {
            kind: self._encode([run for run, special in runs if special == kind], special=kind)
            for kind in (True, False)
        }
        encodings = (next(by_kind[special]) for _, special in runs)
        return [self._joined(document, list(islice(encodings, len(document)))) for document in documents]

    def _encode(self, runs: Sequence[Sequence[Segment]], *, special: bool) -> "Iterator[Encoding]":
        texts = ["".join(segment.text for segment in run if segment.text is not None) for run in runs]
        return iter(self._tokenizer.encode_batch(texts, add_special_tokens=special))

    def _joined(self, runs: Sequence[Sequence[Segment]], encodings: "Sequence[Encoding]") -> Document:
        tokens: list[int] = []
        trained = bytearray()
        for run, encoding in zip(runs, encodings, strict=True):
            ends_here = run[-1].text is None
            ids = list(encoding.ids)
            flags = _flags(run, encoding)
            if ends_here and ids and ids[-1] == self.end and encoding.special_tokens_mask[-1]:
                del ids[-1], flags[-1]  # the tokenizer ends texts by itself
            tokens += ids
            trained += flags
            if ends_here:
                tokens.append(self.end)
                trained.append(run[-1].trained)
        return Document(tokens=tokens, trained=bytes(trained))

    def _number(self, token: str | None) -> int:
        if token is None:
            raise ConfigError(
                [f"--end-token must name the token that ends a document: {_CONFIG} has no eos_token"]
            )
        number = self._tokenizer.token_to_id(token)
        if number is None:
            raise ConfigError([f"--end-token: {self._file} has no token {token!r}"])
        return int(number)

    def _template(self, sources: Mapping[str, str], special: Mapping[str, str]) -> Template | None:
        if not sources:
            return None
        if find_spec("jinja2") is None:
            raise MissingPackageError(what="chat templates", packages=["jinja2"])
        from tools.training.chat_template import ChatTemplate  # noqa: PLC0415  needs that package

        try:
            return ChatTemplate(sources, variables=special)
        except ValueError as error:
            raise _unreadable(self._file, str(error)) from error


def _runs(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield runs of segments that are tokenised as one text: each goes up to an end token."""
    run: list[Segment] = []
    for segment in segments:
        run.append(segment)
        if segment.text is None:
            yield run
            run = []
    if run:
        yield run


def _flags(run: Sequence[Segment], encoding: "Encoding") -> bytearray:
    """Mark each token as trained or not, as its segment is.

    Tokens that the tokenizer puts first are marked as the first segment is.
    """
    marks = b"".join(bytes([segment.trained]) * len(segment.text or "") for segment in run) or bytes(
        [run[0].trained]
    )
    return bytearray(marks[min(start, len(marks) - 1)] for start, _ in encoding.offsets)


def _read(file: Path) -> "Tokenizer":
    from tokenizers import Tokenizer  # noqa: PLC0415  bytes do without it

    try:
        return Tokenizer.from_str(file.read_text())
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error
    except Exception as error:  # the library raises nothing narrower
        raise _unreadable(file, str(error)) from error


def _config_beside(file: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Read the special tokens, and the chat templates by name.

    A template in a file of its own comes first.
    """
    config, template = file.with_name(_CONFIG), file.with_name(_TEMPLATE)
    try:
        settings: dict[str, Any] = json.loads(config.read_text()) if config.exists() else {}
        special = {name: _content(settings[name]) for name in _SPECIAL if settings.get(name)}
        templates = _named(settings.get("chat_template"))
        if template.exists():
            named = file.with_name(_NAMED_TEMPLATES).glob("*.jinja")
            templates = {
                "default": template.read_text(),
                **{file_of_template.stem: file_of_template.read_text() for file_of_template in named},
            }
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unreadable(config, str(error) or type(error).__name__) from error
    return special, templates


def _content(token: Any) -> str:  # noqa: ANN401  a text, or an object that describes it
    return str(token["content"] if isinstance(token, dict) else token)


def _named(templates: Any) -> dict[str, str]:  # noqa: ANN401  none, one, or a list of named ones
    if isinstance(templates, list):
        return {template["name"]: template["template"] for template in templates}
    return {"default": templates} if templates else {}


def _unreadable(file: Path, problem: str) -> DataError:
    return DataError(
        place=str(file),
        problem=f"it cannot be read as a tokenizer: {problem}",
        remedy="give the tokenizer.json that transformers' save_pretrained writes, or the folder it is in",
    )
