"""Names cut in their middle to fit a column, each still another than its neighbours."""

from collections.abc import Iterable, Mapping

from rich.cells import cell_len, set_cell_size

CUT = "…"


def shortened(names: Iterable[str], width: int) -> Mapping[str, str]:
    """Map each name to what is shown of it, at most ``width`` cells; no two are shown the same.

    All are cut at the same column while that tells them apart: programs put what differs at the end
    (``pytorch-training-2026-11-21-10-03-55-123``), people at the beginning.
    """
    distinct = list(dict.fromkeys(names))
    for tail in _tails(width):
        shown = {name: middle_cut(name, width, tail=tail) for name in distinct}
        if len(set(shown.values())) == len(distinct):
            return shown
    return _numbered(distinct, width)


def middle_cut(text: str, width: int, *, tail: int | None = None) -> str:
    """Cut a text in its middle; ``tail`` cells of its end are kept, by default half of the width."""
    if cell_len(text) <= width:
        return text
    kept = max(width - cell_len(CUT), 0)
    end = min(kept // 2 if tail is None else tail, kept)
    return _head(text, kept - end) + CUT + _head(text[::-1], end)[::-1]


def end_cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return _head(text, max(width - cell_len(CUT), 0)) + CUT


def _tails(width: int) -> list[int]:
    """Return lengths of the end to try: half of the cells, then longer ones, then shorter ones."""
    middle = width // 2
    return [*range(middle, width), *range(middle - 1, -1, -1)]


def _head(text: str, width: int) -> str:
    """Return the beginning of a text; a wide character that would be cut in half is left out."""
    return set_cell_size(text, width).rstrip() if cell_len(text) > width else text


def _numbered(names: list[str], width: int) -> Mapping[str, str]:
    """Number names that differ in the middle alone, where they are cut."""
    shown: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        cut, number = middle_cut(name, width), 1
        while cut in taken:
            number += 1
            mark = f"{CUT}{number}"
            cut = _head(name, max(width - cell_len(mark), 0)) + mark
        taken.add(cut)
        shown[name] = cut
    return shown
