"""Tables for people, and the figures and limits that benchmarks have in common."""

from collections.abc import Iterator, Sequence
from statistics import median, quantiles

from trainmaster_client.report import Report

Row = Sequence[object]


def aligned(rows: Sequence[Row], *, named: bool = False) -> Iterator[str]:
    """Yield the lines of a table, its columns as wide as their widest cell.

    Args:
        rows: The headings first. Numbers get commas at thousands.
        named: Whether the first column is a name, and stands at the left.
    """
    texts = [[f"{cell:,}" if isinstance(cell, int | float) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    for first, *others in texts:
        name = first.ljust(widths[0]) if named else first.rjust(widths[0])
        cells = (cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True))
        yield "  " + "  ".join([name, *cells])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table for a page."""
    lines = [head, *rows]
    whole = [f"| {' | '.join(line)} |" for line in lines]
    return [whole[0], f"|{'---|' * len(head)}", *whole[1:]]


def milliseconds(seconds: Sequence[float]) -> dict[str, float]:
    """Return the median, the 95th percentile and the least of at least two times."""
    return {
        "p50": round(1000 * median(seconds), 2),
        "p95": round(1000 * quantiles(seconds, n=20)[-1], 2),
        "best": round(1000 * min(seconds), 2),
    }


def at_most(report: Report, check_id: str, measured: float, limit: float, unit: str = "") -> None:
    """Check a figure; the unit, or what the limit is about, is part of what was expected."""
    report.check(check_id, expected=f"at most {limit} {unit}".rstrip(), actual=measured, ok=measured <= limit)


def at_least(report: Report, check_id: str, measured: float, limit: float, unit: str = "") -> None:
    report.check(
        check_id, expected=f"at least {limit} {unit}".rstrip(), actual=measured, ok=measured >= limit
    )
