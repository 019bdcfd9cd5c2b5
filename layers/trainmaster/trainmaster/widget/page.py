"""The picture of the queue as static HTML: every text escaped, colours of whatever is around it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape

from trainmaster.core.jobs.instances import Capacity, CapacityType, Vector
from trainmaster.core.jobs.model import LIVE
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.jobs.row_words import HAPPENS, WAITS_FOR, short_length
from trainmaster.widget.queue_picture import PoolPicture, QueueLine, QueuePicture

MOST_TYPES = 30
"""Instance types of one pool that are named; the others are counted."""
_STYLE = (
    "<style>.tm{font:13px sans-serif}.tm h3{margin:10px 0 2px}.tm p{margin:2px 0}"
    ".tm table{border-collapse:collapse;width:100%;margin-top:4px}"
    ".tm th,.tm td{text-align:left;padding:2px 8px;border-bottom:1px solid rgba(128,128,128,.4)}"
    ".tm .n{text-align:right}</style>"
)


def html(picture: QueuePicture, *, stack: str) -> str:
    """Render the picture; the page is bounded because the picture is."""
    return f'{_STYLE}<div class="tm">{"".join(_parts(picture, stack))}</div>'


def notice(text: str) -> str:
    """Render one line of text instead of the queue."""
    return f'{_STYLE}<div class="tm"><p>{_text(text)}</p></div>'


def _parts(picture: QueuePicture, stack: str) -> Iterator[str]:
    at = picture.at.astimezone(UTC)
    yield f"<p>{_text(stack)} at {at:%Y-%m-%d %H:%M:%S} UTC</p>"
    if picture.paused:
        yield "<p><strong>An admin paused starts and preemptions.</strong></p>"
    if not picture.pools:
        yield "<p>The policy has no pool: trainmaster policy put FILE.</p>"
    for pool in picture.pools:
        yield from _pool(pool, picture.at)
    if picture.left_out:
        yield f"<p>Pools not shown: {picture.left_out}. For one of them set the widget's parameter pool.</p>"


def _pool(pool: PoolPicture, now: datetime) -> Iterator[str]:
    yield f"<h3>{_text(pool.name)}</h3>"
    if not pool.is_known:
        yield "<p>This pool could not be read; the next refresh tries again.</p>"
        return
    yield f"<p>{'; '.join(_counts(pool)) or 'no instances'}</p>"
    if pool.nothing_starts:
        yield f"<p><strong>Nothing starts: {WAITS_FOR[ReasonCode.RECOUNT]}: trainmaster repair.</strong></p>"
    yield f"<p>{pool.running} running, {pool.waiting} waiting</p>"
    if pool.lines:
        yield _table(pool.lines, now)
    hidden = pool.running + pool.waiting - len(pool.lines)
    if hidden > 0:
        yield f"<p>Jobs not shown: {hidden}. trainmaster queue shows all.</p>"


def _counts(pool: PoolPicture) -> Iterator[str]:
    types = sorted({*pool.capacity, *pool.used, *pool.warm})
    for capacity in types[:MOST_TYPES]:
        warm = f", {pool.warm[capacity]} warm" if pool.warm.get(capacity) else ""
        count = f"{pool.used.get(capacity, 0)} of {pool.capacity.get(capacity, 0)} used{warm}"
        yield f"{_text(_type(capacity))}: {count}"
    if len(types) > MOST_TYPES:
        yield f"{len(types) - MOST_TYPES} more types"


def _table(lines: tuple[QueueLine, ...], now: datetime) -> str:
    named = any(line.job is not None for line in lines)
    heads = [
        "position",
        *(["job", "team"] if named else []),
        "state",
        "instances",
        "priority",
        "for",
        "reason",
    ]
    head = "".join(f"<th>{heading}</th>" for heading in heads)
    return f"<table><tr>{head}</tr>{''.join(_row(line, now, named=named) for line in lines)}</table>"


def _row(line: QueueLine, now: datetime, *, named: bool) -> str:
    who = [line.job or "", line.team or ""] if named else []
    cells = [
        *who,
        line.state.value,
        _instances(line.instances),
        str(line.priority),
        short_length(now - line.since),
        _why(line),
    ]
    position = "" if line.position is None else str(line.position)
    return f'<tr><td class="n">{position}</td>{"".join(f"<td>{_text(cell)}</td>" for cell in cells)}</tr>'


def _why(line: QueueLine) -> str:
    """Return the reason in words; a code of a newer release is shown as it is."""
    if line.state in LIVE:
        return HAPPENS[line.state]
    return WAITS_FOR.get(line.why, line.why)


def _instances(vector: Vector) -> str:
    return ", ".join(f"{count}x {_type(capacity)}" for capacity, count in sorted(vector.items())[:MOST_TYPES])


def _type(capacity: Capacity) -> str:
    word = {CapacityType.SPOT: " spot", CapacityType.PLAN: " on a plan"}
    return capacity.instance_type + word.get(capacity.capacity_type, "")


def _text(text: str) -> str:
    """Escape markup, and replace characters that cannot be printed by question marks."""
    return escape("".join(character if character.isprintable() else "?" for character in text))
