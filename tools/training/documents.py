"""Whole documents as tokens, with the part of each that is trained: from texts, JSON lines and parquet files.

A line of JSON, or a row of parquet, is one of

    {"text": "..."}
    {"prompt": "...", "response": "..."}
    {"messages": [{"role": "user", "content": "..."}, {"role": "assistant", "content": "..."}]}

All of the first is trained; the response of the second ("completion" is accepted too); what the assistant
says in the third, unless the message has `"weight": 0`.

Packed, an answer is never cut from its prompt: best fit, the longest first, among the documents of a window;
what stays empty is filled with a token that is never trained. (Ding et al., Fewer Truncations Improve
Language Modeling, arXiv 2404.10830.) The same documents give the same sequences.
"""

import array
from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from tools.training.chat import END, Segment, Template, Text, simple_template
from tools.training.inputs import BYTE_VOCABULARY, END_OF_DOCUMENT, PARQUET, ParquetRows, check_no_nul
from tools.training.records import json_lines, parsed, text_of, unusable
from training.data.index import TokenDtype

JSON_LINES = ".jsonl"
_BATCH = 256
"""Documents that are tokenised at once: a tokenizer works on several cores."""
_WINDOW = 256
"""Sequences' worth of documents that are packed together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    tokens: Sequence[int]
    trained: bytes
    """A byte for each token: 1 where its prediction is trained, else 0."""

    def as_bytes(self, dtype: TokenDtype) -> bytes:
        wide = array.array("H" if dtype is TokenDtype.UINT16 else "I", list(self.tokens))
        return wide.tobytes()


@dataclass(slots=True)
class Tally:
    """Counts documents and tokens as they pass."""

    documents: int = 0
    tokens: int = 0
    trained: int = 0

    def counted(self, documents: Iterable[Document]) -> Iterator[Document]:
        for document in documents:
            self.documents += 1
            self.tokens += len(document.tokens)
            self.trained += document.trained.count(1)
            yield document

    def told(self) -> str:
        return f"{self.documents} documents, {self.trained} of their {self.tokens} tokens trained"


class Tokenizer(Protocol):
    @property
    def vocabulary(self) -> int:
        """All token numbers are below this."""

    @property
    def end(self) -> int:
        """The token that ends a document."""

    @property
    def pad(self) -> int:
        """The token that fills a sequence, which is never trained."""

    @property
    def template(self) -> Template | None:
        """The template that writes messages; None if the tokenizer has none."""

    def encoded(self, texts: Sequence[Text]) -> list[Document]: ...


class ByteTokenizer:
    """Takes each byte of UTF-8 as a token, as in corpora of plain texts."""

    vocabulary = BYTE_VOCABULARY
    end = pad = END_OF_DOCUMENT
    template = None

    def encoded(self, texts: Sequence[Text]) -> list[Document]:
        return [self._encoded(text.segments) for text in texts]

    def _encoded(self, segments: Sequence[Segment]) -> Document:
        parts = [(_bytes_of(segment), segment.trained) for segment in segments]
        return Document(
            tokens=b"".join(part for part, _ in parts),
            trained=b"".join(bytes([trained]) * len(part) for part, trained in parts),
        )


def _bytes_of(segment: Segment) -> bytes:
    return bytes([END_OF_DOCUMENT]) if segment.text is None else segment.text.encode()


class DocumentFiles:
    """Reads documents from JSON lines, from rows of parquet, and from any other file as one text."""

    def __init__(
        self,
        files: Sequence[Path],
        tokenizer: Tokenizer,
        *,
        column: str | None = None,
        ignored: Collection[str] = (),
    ) -> None:
        """Open the files.

        ``column`` names the one with the texts in parquet files; ``ignored`` names fields to leave out.
        """
        self._files, self.tokenizer, self._ignored = files, tokenizer, frozenset(ignored)
        self._rows = {path: ParquetRows(path, column=column) for path in files if path.suffix == PARQUET}

    def sizes(self) -> Iterator[int]:
        """Yield the bytes of each document, in order."""
        for path in self._files:
            if path in self._rows:
                yield from self._rows[path].sizes()
            elif path.suffix == JSON_LINES:
                yield from (len(line) for _, line in json_lines(path))
            else:
                yield path.stat().st_size

    def documents(self) -> Iterator[Document]:
        """Yield the documents. Raises DataError, with line or row, if a file is not what it should be."""
        texts = self._texts()
        while batch := list(islice(texts, _BATCH)):
            yield from self.tokenizer.encoded(batch)

    def _texts(self) -> Iterator[Text]:
        template = self.tokenizer.template or simple_template
        for path in self._files:
            if path not in self._rows and path.suffix != JSON_LINES:
                yield Text(segments=[Segment(text=_text_in(path)), Segment(text=END)])
                continue
            for place, record in self._records(path):
                try:
                    yield text_of(record, template, ignored=self._ignored)
                except ValueError as error:
                    raise unusable(place, str(error)) from error

    def _records(self, path: Path) -> Iterator[tuple[str, Any]]:
        """Yield each line or row with its place for messages."""
        if path in self._rows:
            for number, row in enumerate(self._rows[path], 1):
                yield f"{path} row {number}", row
            return
        for place, line in json_lines(path):
            yield place, parsed(line, place)


def _text_in(path: Path) -> str:
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise unusable(str(path), f"it is not text in UTF-8 ({error.reason})") from error
    check_no_nul(text, path)
    return text


@dataclass(slots=True)
class Packed:
    """Packs documents into sequences, and counts; the counts are complete when all sequences were taken."""

    length: int
    pad: int
    count: int = 0
    padding: int = 0
    cut: int = 0
    """Documents longer than a sequence, which became several."""

    def sequences(self, documents: Iterable[Document]) -> Iterator[list[Document]]:
        """Yield sequences of exactly ``length`` tokens; the last document of one may be the padding."""
        window: list[Document] = []
        room = _WINDOW * self.length
        for piece in self._pieces(documents):
            window.append(piece)
            room -= len(piece.tokens)
            if room <= 0:
                yield from self._packed(window)
                window, room = [], _WINDOW * self.length
        yield from self._packed(window)

    def _pieces(self, documents: Iterable[Document]) -> Iterator[Document]:
        for document in documents:
            self.cut += len(document.tokens) > self.length
            for start in range(0, len(document.tokens), self.length):
                end = start + self.length
                yield Document(tokens=document.tokens[start:end], trained=document.trained[start:end])

    def _packed(self, window: list[Document]) -> Iterator[list[Document]]:
        bins: list[list[int]] = []
        rooms: list[tuple[int, int]] = []
        """(Free tokens, number of the bin) of all bins, in ascending order."""
        for number in sorted(range(len(window)), key=lambda number: -len(window[number].tokens)):
            need = len(window[number].tokens)
            place = bisect_left(rooms, (need, 0))
            free, chosen = rooms.pop(place) if place < len(rooms) else (self.length, len(bins))
            if chosen == len(bins):
                bins.append([])
            bins[chosen].append(number)
            insort(rooms, (free - need, chosen))
        left = {chosen: free for free, chosen in rooms}
        for chosen in sorted(range(len(bins)), key=lambda chosen: min(bins[chosen])):
            documents = [window[number] for number in sorted(bins[chosen])]
            if free := left[chosen]:
                self.padding += free
                documents.append(Document(tokens=[self.pad] * free, trained=bytes(free)))
            self.count += 1
            yield documents

    def told(self) -> str:
        share = 100 * self.padding / max(1, self.count * self.length)
        cut = f", {self.cut} documents longer than that were cut" if self.cut else ""
        return f"{self.count} sequences of {self.length} tokens, {share:.1f} % padding{cut}"
