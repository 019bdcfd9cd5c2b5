"""The exceptions that Python tracebacks of a log end with, by their shape: a bug may have any name."""

import re
from collections.abc import Iterable, Iterator

# A launcher may put the rank or host before each line.
_FRAME = re.compile(r'^(?P<before>.{0,80}?) {2}File ".{1,500}", line \d{1,7}\b')
_EXCEPTION = re.compile(r"^(?:[A-Za-z_]\w{0,80}\.){0,12}[A-Za-z_]\w{1,80}(?:: |:?\s{0,9}$)")
# Those who only pass on that another process failed.
_MESSENGERS = re.compile(
    r"(?:ChildFailed|CalledProcess|ExecuteUserScript)Error|Process(?:Raised|Exited)Exception|SignalException"
    r"|^(?:subprocess|torch\.distributed\.elastic|torch\.multiprocessing)\.|^(?:INFO|WARNING|ERROR)\b"
)
_REACH = 2000
"""Characters of a line that are looked at."""


def raised(lines: Iterable[str]) -> Iterator[str | None]:
    """For each line the exception that it ends a traceback with, if it does."""
    before: str | None = None
    for line in lines:
        text = line[:_REACH]
        if frame := _FRAME.match(text):
            before = frame["before"]
        elif before is not None and text.startswith(before) and _is_outside(text[len(before) :]):
            exception = text[len(before) :].strip()
            before = None
            yield exception if _EXCEPTION.match(exception) and not _MESSENGERS.search(exception) else None
            continue
        yield None


def _is_outside(text: str) -> bool:
    """Not the source line of a frame, nor the marks below it."""
    return bool(text.strip()) and not text.startswith(" ")
