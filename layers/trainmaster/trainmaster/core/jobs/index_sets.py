"""Tasks of an array: sets of their indices as people write them and as bits, and what a job says of it."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from trainmaster.core.errors import BadOptionError, quoted

HIGHEST_INDEX = 99_999
"""Keeps the indices of 10,000 tasks below 8 KB of the array's row, and five digits of the task's name."""
MOST_RANGES = 200
"""Ranges that a text for people names at most; the others are counted."""

_PART = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9})(?::(?P<step>[0-9]{1,9}))?)?")
_THROTTLE = re.compile(r"(?P<indices>[^%@]*)(?:[%@]\s*(?P<at_most>[0-9]{1,9}))?")
_SEVEN_BITS, _MORE_FOLLOWS = 0x7F, 0x80
_BETWEEN = re.compile(r"\s*,\s*|\s+")


class BadIndexSetError(BadOptionError):
    """A text is no set of indices; ``hint`` says how to write one."""

    def __init__(self, message: str, hint: str = "write e.g. 0-63, 1-7:2 or 1,3,5") -> None:
        super().__init__(message, hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenIndices:
    """Indices in the order in which they were written, and the throttle behind them."""

    indices: tuple[int, ...]
    at_most: int | None = None
    """Tasks that may run at once; None if the text has no throttle."""


def read_indices(text: str) -> WrittenIndices:
    """Read ``0-63%8``, ``1-7:2``, ``1,3,5`` or, as tags allow, ``1 3 5@8``. Raises BadIndexSetError."""
    match = _THROTTLE.fullmatch(text.strip())
    if match is None:
        several = len(re.findall("[%@]", text)) > 1
        what = "more than one throttle" if several else "a throttle that is not a number"
        raise BadIndexSetError(f"{quoted(text)} has {what}", "write one throttle at the end, e.g. 0-63%8")
    if not match["indices"].strip():
        raise BadIndexSetError("names no index")
    parts = _BETWEEN.split(match["indices"].strip())
    indices: dict[int, None] = {}
    for part in parts:
        for index in _range_of(part):
            if index in indices:
                raise BadIndexSetError(f"has index {index} twice", "name each index once")
            indices[index] = None
    at_most = match["at_most"]
    if at_most is not None and int(at_most) < 1:
        raise BadIndexSetError("has a throttle of 0", "let at least 1 task run at once, or leave it out")
    return WrittenIndices(indices=tuple(indices), at_most=int(at_most) if at_most else None)


def _range_of(part: str) -> range:
    if not part:
        raise BadIndexSetError("has a comma with no index beside it")
    match = _PART.fullmatch(part)
    if match is None:
        raise BadIndexSetError(f"has {quoted(part)}, which is no index and no range")
    first, last = int(match["first"]), int(match["last"] or match["first"])
    step = 1 if match["step"] is None else int(match["step"])
    if last < first:
        raise BadIndexSetError(f"has the range {part}, which ends before it begins", f"write {last}-{first}")
    if step < 1:
        raise BadIndexSetError(f"has the step 0 in {part}", "use a step of at least 1")
    if last > HIGHEST_INDEX:
        raise BadIndexSetError(
            f"has index {last}, and the highest is {HIGHEST_INDEX}", "number the tasks from 0 or 1 on"
        )
    return range(first, last + 1, step)


def ranges_text(indices: Iterable[int], *, most: int = MOST_RANGES) -> str:
    """Write indices in ascending order as ``3,7-9``; "" for none. Ranges beyond ``most`` are counted."""
    ranges = list(_ranges(indices))
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:most]]
    left = sum(last - first + 1 for first, last in ranges[most:])
    return ",".join(texts) + (f" and {left} more" if left else "")


def _ranges(indices: Iterable[int]) -> Iterator[tuple[int, int]]:
    first: int | None = None
    last = 0
    for index in indices:
        if first is not None and index == last + 1:
            last = index
            continue
        if first is not None:
            yield first, last
        first = last = index
    if first is not None:
        yield first, last


# ---- positions as bits


def positions(bits: int) -> Iterator[int]:
    """Yield the positions of the bits that are set, in ascending order."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def first_positions(bits: int, count: int) -> tuple[int, ...]:
    """Return the first ``count`` positions, or all if there are fewer."""
    first: list[int] = []
    while bits and len(first) < count:
        lowest = bits & -bits
        first.append(lowest.bit_length() - 1)
        bits ^= lowest
    return tuple(first)


def bits_of(chosen: Iterable[int]) -> int:
    """Return the number whose bits are set at these positions."""
    bits = bytearray()
    for position in chosen:
        byte, bit = divmod(position, 8)
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        bits[byte] |= 1 << bit
    return int.from_bytes(bits, "little")


def all_bits(count: int) -> int:
    """Return the number with the first ``count`` bits set."""
    return (1 << count) - 1


# ---- as bytes, for a row


def packed(indices: Sequence[int]) -> bytes:
    """Write ascending indices as the gaps between them, seven bits a byte."""
    content, last = bytearray(), -1
    for index in indices:
        gap = index - last - 1
        last = index
        while gap > _SEVEN_BITS:
            content.append(gap & _SEVEN_BITS | _MORE_FOLLOWS)
            gap >>= 7
        content.append(gap)
    return bytes(content)


def unpacked(content: bytes) -> tuple[int, ...]:
    """Read what ``packed`` has written."""
    indices, last, gap, shift = list[int](), -1, 0, 0
    for byte in content:
        gap |= (byte & _SEVEN_BITS) << shift
        if byte & _MORE_FOLLOWS:
            shift += 7
            continue
        last += gap + 1
        indices.append(last)
        gap = shift = 0
    return tuple(indices)


MOST_ARRAY_TASKS = 10_000
"""Tasks of one array at most: so many fit into its row, which is read by every pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOf:
    """The array that a job is a task of, and which of its tasks."""

    name: str
    index: int
    position: int
    """Number of the array's indices that are lower: the task's bit in the array's row."""
    at_most: int | None = None
    """The array's throttle when the task became a job; None: it had none, or an earlier release made it."""
    stop_after: int | None = None
    """``stop_after_failures`` of the array; None: an earlier release made the job."""

    @property
    def facts(self) -> dict[str, str | int]:
        """Return what answers and records show of it."""
        return {"name": self.name, "index": self.index}
