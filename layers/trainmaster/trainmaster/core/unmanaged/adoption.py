"""Adopt a training job that bypassed the queue: it becomes a job whose attempt 0 is the one that runs."""

import hashlib
import re
from dataclasses import replace
from datetime import datetime

from trainmaster.core.costs.ledger import month_of
from trainmaster.core.costs.prices import cost_cents
from trainmaster.core.jobs.attempts import Attempt, Claim, Progress, Reason
from trainmaster.core.jobs.instances import Shape, Vector, asked_for
from trainmaster.core.jobs.model import Job, JobSpec, JobState
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.lifecycle.settlement import shape_taken
from trainmaster.core.planning.order import score_of
from trainmaster.core.policy import UNMANAGED_POOL, Policy
from trainmaster.core.request.options import DEFAULT_PRIORITY, MAX_PRIORITY
from trainmaster.core.request.request import TAG_SPEC, Ask, traits_of
from trainmaster.core.request.strict_json import body_hash
from trainmaster.core.submission.admission import ulid
from trainmaster.core.unmanaged.decisions import UnmanagedJob, body_of, options_of, types_of

ADOPTED = Reason(
    code=ReasonCode.ADOPTED,
    message="found running: it did not come through the queue, and is governed from now on",
)
RESTORED = Reason(
    code=ReasonCode.ADOPTED,
    message="found running with this stack's tag: the table does not know its submission",
)
_ULID_RANDOM_BYTES = 10
_SHA256 = re.compile(r"[0-9a-f]{64}")


def note_of(unmanaged: UnmanagedJob) -> Reason:
    return RESTORED if unmanaged.is_ours else ADOPTED


def adopted_job(unmanaged: UnmanagedJob, ask: Ask, *, team: str, policy: Policy) -> Job:
    """Return the job as if submitted and claimed when SageMaker created it, but never preemptible.

    Args:
        unmanaged: The training job.
        ask: Its demand.
        team: Name of the team that it counts for.
        policy: The policy in force.
    """
    spec = _spec(unmanaged, ask, team=team, policy=policy)
    pool = policy.pool(spec.pool)
    assert pool is not None, spec.pool
    priority = _priority(unmanaged, team, policy)
    return Job(
        spec=spec,
        state=JobState.RUNNING,
        priority=priority,
        score=score_of(spec, priority, pool),
        ranked_by=pool.order_key,
        live=_attempt(unmanaged, spec, policy),
        started_at=spec.submitted_at,
    )


def _spec(unmanaged: UnmanagedJob, ask: Ask, *, team: str, policy: Policy) -> JobSpec:
    created = unmanaged.described.created_at
    options = options_of(unmanaged.tags)
    return JobSpec(
        name=unmanaged.name,
        entry_id=_entry_id(unmanaged, created),
        team=team,
        pool=(policy.pool_of(types_of(ask)) or UNMANAGED_POOL).name,
        submitted_by=unmanaged.role_arn,  # who started it SageMaker does not tell
        submitted_at=created,
        shapes=ask.shapes,
        choice=ask.choice,
        preemptible=False,
        max_runtime=ask.max_runtime,
        max_wait=ask.max_wait,
        body_hash=_body_hash(unmanaged),
        checkpoint_uri=ask.checkpoint_uri,
        keep_alive=ask.keep_alive,
        retries=options.get("retries"),
        halves_batch=options.get("on_oom") is not None,
        learned_in=traits_of(ask, body_of(unmanaged), team=team).keys,
        adopted=True,
    )


def _attempt(unmanaged: UnmanagedJob, spec: JobSpec, policy: Policy) -> Attempt:
    seen = unmanaged.described.observation
    requested = Shape(vector=asked_for(spec.shapes, spec.choice), warm_key=spec.shapes[0].warm_key)
    shape = shape_taken(requested, seen)
    attempt = Attempt(
        number=0,
        training_job_name=unmanaged.name,
        shape=shape,
        max_runtime=spec.max_runtime,
        max_wait=spec.max_wait,
        keep_alive=spec.keep_alive if shape.warm_key else None,
        claim=Claim(at=spec.submitted_at, lease_until=spec.submitted_at, month=month_of(spec.submitted_at)),
        progress=Progress(
            training_job_arn=seen.training_job_arn,
            status=seen.status,
            secondary_status=seen.secondary_status,
            training_since=seen.training_since,
        ),
    )
    return _priced(attempt, shape.vector, policy)


def _priced(attempt: Attempt, vector: Vector, policy: Policy) -> Attempt:
    """Reserve the worst case, as at a claim; no budget keeps out a job that runs already."""
    rate = policy.price_table.vector_usd_per_hour(vector)
    cents = cost_cents(rate, attempt.max_runtime)
    if cents is None:
        return attempt
    return replace(attempt, claim=replace(attempt.claim, usd_per_hour=rate, reserved_cents=cents))


def _priority(unmanaged: UnmanagedJob, team: str, policy: Policy) -> int:
    """Return the priority of its tag, up to the team's ceiling."""
    team_policy = policy.team(team)
    ceiling = team_policy.max_priority if team_policy else MAX_PRIORITY
    return min(int(options_of(unmanaged.tags).get("priority", DEFAULT_PRIORITY)), ceiling)


def _entry_id(unmanaged: UnmanagedJob, created: datetime) -> str:
    """Return an id that is the same for the same training job, whichever process finds it."""
    text = f"{unmanaged.described.observation.training_job_arn}@{created.isoformat()}"
    return ulid(created, hashlib.sha256(text.encode()).digest()[:_ULID_RANDOM_BYTES])


def _body_hash(unmanaged: UnmanagedJob) -> str:
    """Return the hash of a submission that the table lost, so that sent again it is the same job."""
    noted = unmanaged.tags.get(TAG_SPEC, "")
    return noted if unmanaged.is_ours and _SHA256.fullmatch(noted) else body_hash(body_of(unmanaged))
