"""Start the jobs of one plan: read together, claim a few at a time, record in groups."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from trainmaster.core.errors import AccountLimitError
from trainmaster.core.jobs.model import Job
from trainmaster.core.planning.actions import Action, Start
from trainmaster.services.scheduler import role_trials, start_protocol
from trainmaster.services.scheduler.broken_rows import read_job, request_of
from trainmaster.services.scheduler.context import PassContext

READ_TOGETHER = 25
"""Starts whose jobs and requests are read in one call: what a look reaches at SageMaker's usual rate."""


@dataclass(slots=True)
class ReadAhead:
    """Reads jobs and requests of coming starts. A missing one is read alone, to get its error."""

    coming: deque[str]
    rows: Mapping[str, tuple[Job, Mapping[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, actions: Iterable[Action]) -> "ReadAhead":
        return cls(deque(action.job.name for action in actions if isinstance(action, Start)))

    def known(self, name: str, context: PassContext) -> tuple[Job, Mapping[str, Any]] | None:
        """Return job and request of a start; each name is asked for once, in the order of the plan."""
        if context.beside.hands > 1 and name in self.coming:
            while self.coming and self.coming[0] != name:
                self.coming.popleft()  # it was passed over
            names = [self.coming.popleft() for _ in range(min(READ_TOGETHER, len(self.coming)))]
            self.rows = context.reader.to_start(names)
        return self.rows.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Holds a start that may claim its instances."""

    action: Start
    job: Job
    body: Mapping[str, Any]


def ready(action: Start, ahead: ReadAhead, context: PassContext) -> Ready | None:
    """Prepare a start; None if the job has failed, or waits with what was just noted about it."""
    known = ahead.known(action.job.name, context)
    job = read_job(action.job, context, known=known[0] if known else None)
    body = known[1] if known else request_of(job, context)
    if body is None or start_protocol.forbidden(job, body, context):
        return None
    if role_trials.notes_role(job, body, context):
        return None
    start_protocol.check_request(job, action, body, context)
    return Ready(action=action, job=job, body=body)


def follow(first: Start, behind: Iterable[Action], may: Callable[[Start], bool]) -> Iterator[Start]:
    """Yield starts right behind the first that can be claimed with it."""
    if not _is_plain(first):
        return
    for action in behind:
        if not isinstance(action, Start) or not _is_plain(action) or not may(action):
            return
        yield action


def _is_plain(action: Start) -> bool:
    """Tell whether its claim needs nothing but free instances."""
    is_bounded = action.charge is not None and action.charge.room_cents is not None
    is_probe = bool(action.probes) or action.probes_role is not None
    return action.reuses is None and not action.ends_hold and not is_probe and not is_bounded


def claim(start: Ready, context: PassContext) -> Callable[[], None]:
    """Claim the job's instances; return the call that then makes the training job."""
    claimed = start_protocol.claim(start.job, start.action, context)
    return partial(_launch, start.action, claimed, start.body, context)


def claim_together(several: Sequence[Ready], context: PassContext) -> list[Callable[[], None]] | None:
    """Claim all in one transaction; None if that failed, and each has to be claimed alone.

    Crash safety: as if the claims were made one after the other; each has its lease.
    """
    try:
        claimed = start_protocol.claim_all([(start.job, start.action) for start in several], context)
    except Exception:  # noqa: BLE001  whatever it is, it comes again to whom it belongs
        return None
    return [
        partial(_launch, start.action, job, start.body, context)
        for start, job in zip(several, claimed, strict=True)
    ]


def _launch(action: Start, claimed: Job, body: Mapping[str, Any], context: PassContext) -> None:
    trial = role_trials.trial(action, claimed, body, context)
    try:
        taken = start_protocol.launch(claimed, body, context, trial)
    except AccountLimitError as error:
        if start_protocol.may_be_of_instances(claimed, error):
            start_protocol.learn(action, context)
        raise
    if taken:
        start_protocol.forget(action, context)
        role_trials.taken(trial, context)
