"""Ends as the product decides them, where a test has read nothing for them."""

from datetime import datetime, timedelta

from trainmaster.core.jobs.attempts import Reason
from trainmaster.core.jobs.failures import Diagnosis, FailureClass
from trainmaster.core.jobs.model import Job
from trainmaster.core.jobs.observations import Observation
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle import settlement, steps
from trainmaster.core.lifecycle.change import Change
from trainmaster.core.lifecycle.decision import End, EndFacts, decide
from trainmaster.core.policy import Policy
from trainmaster.core.policy.governance import Fallback, Governing, Spot

from tests.builders import NOON

UNKNOWN = Diagnosis(failure_class=FailureClass.UNKNOWN, advice="See its log.")
STAYS = Policy(
    pools=(),
    teams=(),
    admins=(),
    warnings=(),
    source={},
    governing=Governing(spot=Spot(fallback=Fallback.NONE)),
)
"""No failure of an unknown class is retried, and nobody leaves spot."""


def stopped_for_idle(job: Job, now: datetime, *, requeues: bool = False) -> Job:
    """The stop of a job whose GPUs are idle, as an alarm asks for it."""
    assert job.live is not None
    code = ReasonCode.IDLE_REQUEUE if requeues else ReasonCode.IDLE
    idle = job.live.watch.idle_until(now) // timedelta(minutes=1)
    reason = Reason(code=code, message=f"its GPUs did nothing: {idle} minutes since its alarm went off")
    return steps.stopped_by_rule(job, reason, requeues=requeues)


def end_of(job: Job, seen: Observation | None, *, policy: Policy = STAYS, now: datetime = NOON) -> End | None:
    """None while the training job has not ended; of a failure nobody knows the cause."""
    if seen is not None and not seen.has_ended:
        return None
    failed = seen is not None and seen.status == "Failed"
    facts = EndFacts(job=job, seen=seen, policy=policy, diagnosis=UNKNOWN if failed else None)
    return decide(facts, now=now)


def observed(job: Job, seen: Observation | None, *, now: datetime) -> Change | None:
    """What news of the live attempt makes of the job; None when there is nothing new."""
    end = end_of(job, seen, now=now)
    if end is not None:
        return settlement.settled(job, end, seen, now=now)
    assert seen is not None
    after = steps.progressed(job, seen, now=now)
    return None if after == job else Change(before=job, after=after)
