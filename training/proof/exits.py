"""With which exit codes an attempt may end, by the signal it was sent and when."""

import signal

PREEMPTED = 128 + signal.SIGTERM
KILLED = -signal.SIGKILL
_STEPS_TO_AGREE = 2
"""A signal that comes after a rank has voted on the next step ends the step after it."""


def allowed_exits(kill: str | None, *, sent_at: int | None, done: int, steps: int) -> list[int]:
    """The first one is the usual one.

    Args:
        kill: As a schedule has it, ``7:TERM``; None: it is left alone.
        sent_at: The step that was seen to be done when the signal was sent; None: it was never sent.
        done: The last step that was trained before this attempt.
        steps: Of the whole training.
    """
    if kill is None or done == steps:
        return [0]
    if kill.endswith("KILL"):
        return [KILLED]
    if sent_at is not None and sent_at + _STEPS_TO_AGREE >= steps:
        return [PREEMPTED, 0]  # it may be done before it can stop
    return [PREEMPTED]
