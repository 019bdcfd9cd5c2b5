"""Packs whole documents into sequences of one length, so that an answer is never cut from its prompt.

Best fit, the longest first, among the documents of a window; what stays empty is filled with a token that
is never trained. (Ding et al., Fewer Truncations Improve Language Modeling, arXiv 2404.10830.) The same
documents give the same sequences.
"""

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from training.data.documents import Document

_WINDOW = 256
"""Sequences' worth of documents that are packed together."""


@dataclass(slots=True)
class Packed:
    """What became of the documents; complete when all sequences were taken."""

    length: int
    pad: int
    count: int = 0
    padding: int = 0
    cut: int = 0
    """Documents longer than a sequence, which became several."""

    def sequences(self, documents: Iterable[Document]) -> Iterator[list[Document]]:
        """Each of exactly ``length`` tokens; the last document of one may be the padding."""
        window: list[Document] = []
        room = _WINDOW * self.length
        for one in self._pieces(documents):
            window.append(one)
            room -= len(one.tokens)
            if room <= 0:
                yield from self._packed(window)
                window, room = [], _WINDOW * self.length
        yield from self._packed(window)

    def _pieces(self, documents: Iterable[Document]) -> Iterator[Document]:
        for one in documents:
            self.cut += len(one.tokens) > self.length
            for start in range(0, len(one.tokens), self.length):
                end = start + self.length
                yield Document(tokens=one.tokens[start:end], trained=one.trained[start:end])

    def _packed(self, window: list[Document]) -> Iterator[list[Document]]:
        bins: list[list[int]] = []
        rooms: list[tuple[int, int]] = []
        """(Tokens that are free, bin), in order."""
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
