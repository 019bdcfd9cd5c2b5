"""What a user who waits for a job is told: each transition once, the place in the queue when it changes."""

from collections.abc import Iterator

from trainmaster_client.jobs.job_views import JobView, Transition


class Progress:
    """Fed with successive views of one job. Reads the history, so it misses nothing between two looks."""

    def __init__(self) -> None:
        self._told: set[Transition] = set()
        self._last_place = ""

    def lines(self, job: JobView) -> list[str]:
        """The lines to show now; none when nothing changed."""
        return [*self._transitions(job), *self._place(job)]

    def _transitions(self, job: JobView) -> Iterator[str]:
        for transition in job.history:
            if transition not in self._told:
                self._told.add(transition)
                yield transition_line(transition, job)

    def _place(self, job: JobView) -> list[str]:
        place = place_line(job) if job.is_waiting else ""
        changed = place and place != self._last_place
        self._last_place = place
        return [place] if changed else []


def transition_line(transition: Transition, job: JobView) -> str:
    """In the form of the SDK's own status lines: time, state, what it means."""
    parts = [_attempt(transition, job), transition.why]
    text = "; ".join(part for part in parts if part)
    at = transition.at.strftime("%Y-%m-%d %H:%M:%S")
    return f"{at} {_word(transition)}" + (f" - {text}" if text else "")


def place_line(job: JobView) -> str:
    """One line for a job that waits: where it stands and why it does not run yet."""
    state = "Waiting to resume" if job.state == "preempted" else "Waiting"
    return ", ".join(part for part in (state, _standing(job)) if part) + (f" - {job.why}" if job.why else "")


def _word(transition: Transition) -> str:
    again = transition.to == "running" and transition.attempt > 0
    return "Resumed" if again else transition.to.capitalize()


def _attempt(transition: Transition, job: JobView) -> str:
    if transition.to not in {"starting", "running"}:
        return ""
    names = [one.training_job_name for one in job.attempts if one.number == transition.attempt]
    name = f", training job {names[0]}" if names and names[0] else ""
    return f"attempt {transition.attempt}{name}"


def _standing(job: JobView) -> str:
    pool = f" in pool {job.pool}" if job.pool else ""
    if job.position is not None:
        return f"position {job.position}{pool}"
    if job.ahead_at_least is not None:
        return f"at least {job.ahead_at_least} jobs ahead{pool}"
    return f"in the queue{pool}" if job.state != "held" else "held"
