"""Waiting for one job: look, show each transition once and its place when it changes, wait, look again."""

import secrets
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from trainmaster_client.api import Document
from trainmaster_client.errors import PASSING_ERRORS, TrainmasterClientError
from trainmaster_client.errors.remedies import ADVICE
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.jobs.job_views import JobView, Transition
from trainmaster_client.jobs.look_intervals import FIRST_POLL_SECONDS, look_interval, poll_seconds, spread

SILENCE_SECONDS = 15 * 60
"""Seconds that the API may not answer before the watch gives up; the job does not depend on it."""
_JITTER = secrets.SystemRandom()
"""Numbers that the user's program has seeded for itself stay as they are."""


class ExpiryNotice:
    """Says once that the credentials have expired: a wait finds out by its looks and by its log."""

    def __init__(self) -> None:
        self._is_said = False

    def lines(self) -> list[str]:
        """Return the line to show now; none if it was shown."""
        is_new, self._is_said = not self._is_said, True
        advice = ADVICE[Trouble.EXPIRED_CREDENTIALS]
        return [f"{advice} The job continues, and so does this wait with new ones."] if is_new else []

    def is_over(self) -> None:
        """Reset once new credentials work: the next expiry is reported again."""
        self._is_said = False


class Progress:
    """Fed with successive views of one job. Reads the history, so it misses nothing between two looks."""

    def __init__(self) -> None:
        self._shown: set[Transition] = set()
        self._last_place = ""

    def lines(self, job: JobView) -> list[str]:
        """Return the lines to show now; none if nothing changed."""
        return [*self._transitions(job), *self._place(job)]

    def _transitions(self, job: JobView) -> Iterator[str]:
        for transition in job.history:
            if transition not in self._shown:
                self._shown.add(transition)
                yield transition_line(transition, job)

    def _place(self, job: JobView) -> list[str]:
        place = place_line(job) if job.is_waiting else ""
        changed = place and place != self._last_place
        self._last_place = place
        return [place] if changed else []


def transition_line(transition: Transition, job: JobView) -> str:
    """Write a transition in the form of the SDK's own status lines: time, state, what it means."""
    parts = [_attempt(transition, job), transition.why]
    text = "; ".join(part for part in parts if part)
    at = transition.at.strftime("%Y-%m-%d %H:%M:%S")
    return f"{at} {_word(transition)}" + (f" - {text}" if text else "")


def place_line(job: JobView) -> str:
    """Write one line for a job that waits: its place and why it does not run yet."""
    state = "Waiting to resume" if job.state == "preempted" else "Waiting"
    why = job.waiting.message if job.waiting and is_next(job) else job.why
    return ", ".join(part for part in (state, _standing(job)) if part) + (f" - {why}" if why else "")


def is_next(job: JobView) -> bool:
    """Tell whether nothing is ahead of a job, so that the code ``ahead`` before its reason would mislead."""
    return job.position == 1 and job.waiting is not None and job.waiting.code == "ahead"


def _word(transition: Transition) -> str:
    again = transition.to == "running" and transition.attempt > 0
    return "Resumed" if again else transition.to.capitalize()


def _attempt(transition: Transition, job: JobView) -> str:
    if transition.to not in {"starting", "running"}:
        return ""
    names = [attempt.training_job_name for attempt in job.attempts if attempt.number == transition.attempt]
    name = f", training job {names[0]}" if names and names[0] else ""
    return f"attempt {transition.attempt}{name}"


def _standing(job: JobView) -> str:
    pool = f" in pool {job.pool}" if job.pool else ""
    if job.position is not None:
        return f"position {job.position}{pool}"
    if job.ahead_at_least is not None:
        return f"at least {job.ahead_at_least} jobs ahead{pool}"
    if job.waiting is not None and job.waiting.code == "dependency" and job.state != "held":
        return f"not in the queue{pool} yet"
    return f"in the queue{pool}" if job.state != "held" else "held"


def dependents_note(document: Document) -> str:
    """Say how many jobs wait for a job; "" where none does, or the API is of an earlier release."""
    count = document.get("dependents_count") or 0
    return "" if not count else f"; {count} job{'s wait' if count > 1 else ' waits'} for it"


@dataclass(slots=True, kw_only=True)
class Watch:
    """Watches a job, seen through ``look`` and reported through ``say``."""

    look: Callable[[], JobView]
    say: Callable[[str], None]
    progress: Progress = field(default_factory=Progress)
    """Knows what was shown before, which is not shown again."""
    further: Callable[[], list[str]] = list
    """Lines beside the job's own, as its log has them; asked after each look."""
    late_looks: int = 0
    """Times ``further`` is asked after the end: CloudWatch shows a line seconds after it was printed."""
    first_poll: float = FIRST_POLL_SECONDS
    """Least seconds between two looks."""
    age: Callable[[], float] = float
    """Seconds since what ``look`` gave last was read; 0 where each look asks the API."""
    starts_in: Callable[[], float | None] = lambda: None
    """Seconds until the job is likely to start, where somebody has estimated that."""
    timeout: float | None = None
    """Seconds; None watches for as long as it takes."""
    expiry: ExpiryNotice = field(default_factory=ExpiryNotice)
    """Shared with what gives the further lines."""
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = _JITTER.random
    """Draw a number from 0 to 1 that shortens an interval, so that processes do not look in step."""

    def until_final(self) -> JobView:
        """Return the last view: final, unless ``timeout`` came first."""
        steps = self.steps()
        while not isinstance(step := advance(steps), JobView):
            self.sleep(step)
        return step

    def steps(self) -> Generator[float, None, JobView]:
        """Watch like ``until_final``, for a caller who waits itself: each value is a pause in seconds."""
        begun = news_at = self.monotonic()
        job: JobView | None = None
        while True:
            job = yield from self._look_patiently(is_first=job is None)
            lines = self._lines(job)
            self._say_all(lines)
            now = self.monotonic()
            news_at = now if lines else news_at
            if job.is_final or (self.timeout is not None and now - begun >= self.timeout):
                break
            yield self._pause(job, now=now, news_at=news_at, begun=begun)
        for _ in range(self.late_looks if job.is_final and job.attempts else 0):
            yield self.first_poll
            self._say_all(self.further())
        return job

    def _pause(self, job: JobView, *, now: float, news_at: float, begun: float) -> float:
        """Return the seconds until the next look, no later than ``timeout``."""
        interval = look_interval(job, quiet=now - news_at, first=self.first_poll, starts_in=self.starts_in())
        # An API that is slower than the interval gets a rest, too: it may be slow because of waits like this.
        rest = self.first_poll / 2
        pause = max(rest, spread(interval, chance=self.chance()) - self.age())
        return pause if self.timeout is None else min(pause, begun + self.timeout - now)

    def _lines(self, job: JobView) -> list[str]:
        """Return the lines to show: what a job printed comes before the line with its end."""
        news, printed = self.progress.lines(job), self.further()
        return [*printed, *news] if job.is_final else [*news, *printed]

    def _say_all(self, lines: list[str]) -> None:
        for line in lines:
            self.say(line)

    def _look_patiently(self, *, is_first: bool) -> Generator[float, None, JobView]:
        """Look until the API answers: a network outage or an expired login does not end a wait of days."""
        begun, reported, has_expired = self.monotonic(), False, False
        while True:
            try:
                job = self.look()
            except TrainmasterClientError as error:
                is_expired = error.may_be_renewed and not is_first  # at first nobody has logged in yet
                silent = self.monotonic() - begun
                if silent >= SILENCE_SECONDS or not (is_expired or isinstance(error, PASSING_ERRORS)):
                    raise
                if is_expired:
                    has_expired = True
                    self._say_all(self.expiry.lines())
                elif not reported:
                    self.say(f"{error} Still trying; the job continues without this connection.")
                    reported = True
            else:
                if has_expired:
                    self.expiry.is_over()
                return job
            yield poll_seconds(silent, first=self.first_poll)


def advance(steps: Generator[float, None, JobView]) -> float | JobView:
    """Return the next pause of a watch, or its last view. Takes as long as a look does."""
    try:
        return next(steps)
    except StopIteration as ended:
        job: JobView = ended.value
        return job
