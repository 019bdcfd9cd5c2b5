"""When SageMaker reports a secondary status of an attempt: each report wakes a pass.

As the same attempt went where the history says that, else at the usual shares of a start-up.
"""

from collections.abc import Iterator
from datetime import timedelta

from trainmaster_client.simulate.engine.past_jobs import (
    DOWNLOADING,
    INTERRUPTED_STATUS,
    STOPPING,
    TRAINING,
    UPLOADING,
    PastAttempt,
)
from trainmaster_client.simulate.engine.runs import Course, as_it_was, exact_s, in_s

_Timed = tuple[str, timedelta]


def startup_news(course: Course, *, number: int, warm: bool, startup_s: float) -> Iterator[float]:
    """Yield seconds after the start of the attempt at which SageMaker reports, before it trains."""
    then = _alike(course, number, warm=warm)
    if then is None:
        yield from (exact_s(round(startup_s * share)) for share in course.pace.startup_news)
        return
    for status, at in then.statuses:
        if status in (TRAINING, STOPPING):
            return
        yield in_s(at)


def launch_s(course: Course, *, number: int, warm: bool, startup_s: float) -> float:
    """Return the seconds until an attempt has its instances; a warm pool's are there at once."""
    then = _alike(course, number, warm=warm)
    launched = None if then is None else then.began(DOWNLOADING)
    if warm:
        return 0
    if launched is not None:
        return in_s(launched)
    return exact_s(startup_s * course.pace.launch)


def restart_news(course: Course, *, number: int, interruption: int) -> Iterator[float]:
    """Yield seconds after an interruption (the first has number 0), before it trains again."""
    then, seen = as_it_was(course, number), -1
    interrupted_at = timedelta()
    for status, at in () if then is None else then.statuses:
        if status == INTERRUPTED_STATUS:
            seen += 1
            interrupted_at = at
        elif seen == interruption:
            if status == TRAINING:
                return
            yield in_s(at - interrupted_at)


def upload_s(course: Course) -> float:
    """Return the upload of the job's last attempt, part of how long it trains; 0 if not known."""
    if course.past.end != "completed":
        return 0
    last = course.past.attempts[-1] if course.past.attempts else None
    uploads = None if last is None else last.began(UPLOADING)
    if last is None or uploads is None or last.ended_at is None:
        return in_s(course.pace.upload)
    return in_s(last.ended_at - last.started_at - uploads)


def stop_news(course: Course, *, number: int, stop_s: float) -> Iterator[float]:
    """Yield seconds after a stop, before its instances are free."""
    then = as_it_was(course, number)
    stopped = None if then is None else then.began(STOPPING)
    if then is None or stopped is None:
        return
    after = (in_s(at - stopped) for _, at in then.statuses if at > stopped)
    yield from (at for at in after if at < stop_s)


def _alike(course: Course, number: int, *, warm: bool) -> PastAttempt | None:
    then = as_it_was(course, number)
    return then if then is not None and then.statuses and then.warm is warm else None
