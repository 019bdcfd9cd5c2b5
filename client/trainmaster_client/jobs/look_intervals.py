"""How long to wait before the next look at a job: seconds near its turn, up to a minute far from it. Pure."""

from trainmaster_client.jobs.job_views import JobView

FIRST_POLL_SECONDS = 1.0

LONGEST_POLL_SECONDS = 10.0
"""Most seconds between two looks at a job that runs, or that may start at any moment."""

FAR_POLL_SECONDS = 60.0
"""Most seconds between two looks at a job that is far from its turn."""

POLLS_PER_QUIET_TIME = 20
"""Nothing new for t seconds: look each t/20 s. A news item is so at most 5% late."""

SPREAD = 0.2
"""Share of an interval that chance may take away, so that processes which began together part."""


def look_interval(
    job: JobView, *, quiet: float, first: float = FIRST_POLL_SECONDS, starts_in: float | None = None
) -> float:
    """Choose the seconds until the next look at a job.

    AWS takes about one start a second, so a job with n others ahead hardly starts within n seconds.

    Args:
        job: As it was seen last.
        quiet: Seconds without news.
        first: The shortest interval, for each job that is ahead.
        starts_in: Seconds until it is likely to start; None: nobody estimated that.
    """
    interval = poll_seconds(quiet, first=first)
    if not job.is_waiting:
        return interval
    far = max(FAR_POLL_SECONDS, first)
    if starts_in is not None:
        return max(interval, min(far, starts_in / POLLS_PER_QUIET_TIME))
    if job.state == "held":  # a person has to release it
        return max(first, min(far, quiet / POLLS_PER_QUIET_TIME))
    if job.position is not None:
        return max(interval, min(far, first * (job.position - 1)))
    return interval if job.ahead_at_least is None else far


def poll_seconds(quiet: float, *, first: float) -> float:
    """Return the pause before the next look, after ``quiet`` seconds without news."""
    return max(first, min(LONGEST_POLL_SECONDS, quiet / POLLS_PER_QUIET_TIME))


def spread(interval: float, *, chance: float) -> float:
    """Shorten the interval by what chance, from 0 to 1, takes away: never longer, so no news is later."""
    return interval * (1 - SPREAD * chance)
