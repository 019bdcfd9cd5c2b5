"""GET and PUT /policy, its dry run, PUT /policy/paused: for admins. No job is stranded by a change."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from fnmatch import fnmatchcase
from http import HTTPStatus

from trainmaster.api.policy_trial import try_policy
from trainmaster.api.policy_warnings import alarm_warnings, price_warnings, unwatched_warning
from trainmaster.api.request_context import Answer, ApiReader, RequestContext, flag, wake
from trainmaster.api.views import View, instant_text, policy_view
from trainmaster.core.errors import (
    FieldError,
    NotFoundError,
    PayloadTooLargeError,
    PolicyInUseError,
    PolicyViolationError,
    TrainmasterError,
    invalid,
    quoted,
)
from trainmaster.core.history.journal import capacity_changes
from trainmaster.core.history.past_records import PolicyPut
from trainmaster.core.jobs.instances import Capacity
from trainmaster.core.policy import DEFAULT_TEAM, Policy, PoolPolicy, defaults_that_change, parse_policy
from trainmaster.core.policy.training_plans import plans_elsewhere
from trainmaster.core.records import StoredPolicy, SubmissionFreeze
from trainmaster.core.request.strict_json import JsonObject, JsonValue, parse_object
from trainmaster.core.submission.identity import principal_of
from trainmaster.services.calendars import at_instant, refuse_overbooked
from trainmaster.services.plan_looks import with_plans

CLOSED_FOR = timedelta(minutes=1)
"""More than the API function may take (15 s), and than two clocks may differ."""
_EVERY = 1_000_000
"""More than a pool ever holds."""


@contextmanager
def frozen_where_less(context: RequestContext, new: Policy) -> Iterator[None]:
    """Close pools that lose types, or go, to submissions judged by the policy before ``new``."""
    pools = tuple(pool.name for pool in context.policy.pools if _removed(pool, new))
    if not pools:
        yield
        return
    now = context.outside.clock()
    freeze = SubmissionFreeze(
        pools=pools,
        teams=tuple(team.name for team in context.policy.teams) or (DEFAULT_TEAM,),
        version=context.stored.version,
        at=now,
        until=now + CLOSED_FOR,
    )
    context.outside.policies.close(freeze)
    try:
        yield
    except TrainmasterError:
        context.outside.policies.reopen(freeze)
        raise


def _removed(pool: PoolPolicy, new: Policy) -> frozenset[str]:
    after = new.pool(pool.name)
    return pool.instance_types - (after.instance_types if after else frozenset())


def refuse_strandings(old: Policy, new: Policy, reader: ApiReader) -> None:
    """Raise PolicyInUseError if a live or waiting job needs what the new policy removes."""
    errors = [error for pool in old.pools for error in _strandings(pool, new, reader)]
    if errors:
        raise PolicyInUseError("live or waiting jobs need what the new policy removes", errors=errors)


def _strandings(pool: PoolPolicy, new: Policy, reader: ApiReader) -> Iterator[FieldError]:
    after = new.pool(pool.name)
    removed = _removed(pool, new)
    in_use = removed & _types_in_use(pool.name, reader) if removed else frozenset()
    if after is None and in_use:
        yield _stranding("pools", f"pool {pool.name} has live or waiting jobs")
    elif after is not None:
        for instance_type in sorted(in_use):
            field = f"pools[{new.pools.index(after)}].capacity"
            yield _stranding(field, f"pool {pool.name} has live or waiting jobs on {instance_type}")
        yield from _plan_strandings(pool, after, reader, field=f"pools[{new.pools.index(after)}].plans")


def _plan_strandings(
    pool: PoolPolicy, after: PoolPolicy, reader: ApiReader, *, field: str
) -> Iterator[FieldError]:
    """Yield the removed plans that jobs run on, or that a job which waits names."""
    removed = {plan.name for plan in pool.plans} - {plan.name for plan in after.plans}
    in_use = {capacity.plan for capacity in _in_use(pool.name, reader)} if removed else set()
    for name in sorted(removed & in_use):
        yield FieldError(
            field=field,
            message=f"pool {pool.name} has live or waiting jobs on training plan {name}",
            hint="keep the plan until they have ended, or cancel them",
        )


def refuse_roles_it_cannot_pass(policy: Policy, may_pass: tuple[str, ...]) -> None:
    """Raise PolicyViolationError if a pool sets a role with which the stack could start no job.

    Args:
        policy: The new policy.
        may_pass: Patterns of the roles that the stack may pass to SageMaker. None: it is not known, or each
            team has a launcher role that passes its own.
    """
    starts_itself = not policy.teams or len(policy.launchers) < len(policy.teams)
    if not may_pass or not starts_itself:
        return
    errors = [
        FieldError(
            field=f"pools[{number}].overrides.role_arn",
            message=f"is none of the stack's TrainingRoleArns: {pool.overrides.role_arn}",
            hint=f"deploy with it in TrainingRoleArns, or write one that matches: {', '.join(may_pass)}",
        )
        for number, pool in enumerate(policy.pools)
        if pool.overrides.role_arn and not any(fnmatchcase(pool.overrides.role_arn, arn) for arn in may_pass)
    ]
    if errors:
        raise PolicyViolationError("jobs would be refused by IAM", errors=errors)


def _stranding(field: str, message: str) -> FieldError:
    return FieldError(field=field, message=message, hint="set its capacity to 0 and drain")


def _types_in_use(pool: str, reader: ApiReader) -> frozenset[str]:
    return frozenset(capacity.instance_type for capacity in _in_use(pool, reader))


def _in_use(pool: str, reader: ApiReader) -> frozenset[Capacity]:
    """Return the capacities that any unfinished job uses or allows; reads the whole queue, but rarely."""
    waiting = reader.waiting(pool, after=None, limit=_EVERY)
    parked = reader.parked(pool, after=None, limit=_EVERY)
    wanted = [shape.vector for job in (*waiting, *parked) for shape in job.shapes]
    held = [job.vector for job in reader.running(pool)]
    return frozenset(capacity for vector in (*wanted, *held) for capacity in vector)


MAX_TEXT_BYTES = 100 * 1024
"""Bytes of UTF-8. With a document in the same body of 256 KiB, the item stays below DynamoDB's 400 KB."""
_REVISION = re.compile(r"[1-9][0-9]{0,8}")


def show_policy(context: RequestContext) -> Answer:
    """Show the policy in force, or an earlier revision."""
    wanted = context.call.parameters("revision").get("revision")
    if wanted is None:
        written = context.outside.policies.revision(context.stored.revision)
        text = _as_put(context.stored, written.text if written else None)
        unwatched = unwatched_warning(context.policy)
        warnings = context.in_force.warnings + unwatched + price_warnings(context, context.policy)
        return Answer(status=HTTPStatus.OK, body=policy_view(context.stored, warnings) | text)
    stored = context.outside.policies.revision(_revision(wanted))
    if stored is None:
        raise NotFoundError(f"there is no revision {wanted}; the newest is {context.stored.revision}")
    earlier = replace(stored, paused=context.stored.paused)
    facts = _as_put(stored, stored.text)
    return Answer(status=HTTPStatus.OK, body=policy_view(earlier, _warnings(stored)) | facts)


def _as_put(stored: StoredPolicy, text: str | None) -> View:
    return {"text": text, "put_at": instant_text(stored.put_at), "put_by": stored.put_by or None}


def put_policy(context: RequestContext) -> Answer:
    """Replace the policy read on entering; if another admin was faster, this one may try again (503)."""
    dry_run = flag(context.call, "dry_run", default=False)
    document, text = _document_and_text(_body(context))
    now = context.outside.clock()
    policy = with_plans(at_instant(_parsed(document, context), now), context.outside.policies, now)
    refuse_overbooked(policy, now)
    refuse_roles_it_cannot_pass(policy, context.outside.training_role_arns)
    if dry_run:
        return _tried(context, policy)
    pools = _pools(context.policy, policy)
    with frozen_where_less(context, policy):
        refuse_strandings(context.policy, policy, context.outside.reader)
        now = context.outside.clock()
        changes = tuple(capacity_changes(context.policy, policy, at=now))
        stored = context.outside.policies.put(
            policy.source,
            text=text,
            pools=pools,
            replaces=context.stored,
            history=PolicyPut(at=now, by=principal_of(context.caller), changes=changes),
        )
    wake(context.outside.wake_ups, pools)
    return Answer(status=HTTPStatus.OK, body=policy_view(stored, _of_a_put(context, policy)))


def _parsed(document: JsonValue, context: RequestContext) -> Policy:
    """Parse a document. Raises PolicyViolationError, also if a plan is not of the stack's account."""
    policy = parse_policy(document)
    outside = context.outside
    plans = [pool.plans for pool in policy.pools]
    foreign = list(plans_elsewhere(plans, account=outside.account_id, region=outside.region))
    if foreign:
        raise PolicyViolationError("a training plan is of another account or region", errors=foreign)
    return policy


def _of_a_put(context: RequestContext, policy: Policy) -> tuple[FieldError, ...]:
    changed = defaults_that_change(context.policy, policy)
    return policy.warnings + changed + alarm_warnings(context, policy) + price_warnings(context, policy)


def _tried(context: RequestContext, policy: Policy) -> Answer:
    """Answer as the put would, with its effects on jobs; nothing is changed."""
    refuse_strandings(context.policy, policy, context.outside.reader)
    next_one = context.stored.followed_by(policy.source, None)
    trial = try_policy(context, policy)
    outcome: View = {"changes": list(trial.changes), "truncated": trial.is_truncated}
    if trial.by_the_clock:  # older clients know no such key
        outcome["by_the_clock"] = list(trial.by_the_clock)
    return Answer(status=HTTPStatus.OK, body=policy_view(next_one, _of_a_put(context, policy)) | outcome)


def put_paused(context: RequestContext) -> Answer:
    context.call.parameters()
    paused = _paused(_body(context))
    stored = context.stored
    if paused is not stored.paused:
        pools = _pools(context.policy)
        replaces = context.in_force.replaceable
        stored = context.outside.policies.set_paused(paused, pools=pools, replaces=replaces)
        wake(context.outside.wake_ups, pools)
    return Answer(status=HTTPStatus.OK, body=policy_view(stored, context.in_force.warnings))


def _revision(text: str) -> int:
    if _REVISION.fullmatch(text):
        return int(text)
    error = FieldError(
        field="query.revision", message=f"{quoted(text)} is no revision", hint="revisions are 1, 2, 3 ..."
    )
    raise invalid([error])


def _warnings(stored: StoredPolicy) -> tuple[FieldError, ...]:
    """Return the document's warnings; none if it was valid once and is not any more."""
    try:
        return parse_policy(stored.document, is_stored=True, defaults=stored.defaults).warnings
    except PolicyViolationError:
        return ()


def _body(context: RequestContext) -> JsonObject:
    call = context.call
    return parse_object(call.body, base64=call.is_base64, content_type=call.content_type)


def _document_and_text(body: JsonObject) -> tuple[JsonValue, str | None]:
    """Read the document, or ``{"policy": document, "text": text}``: no document has these keys."""
    if body.keys() != {"policy", "text"}:
        return body, None
    text = body["text"]
    if not isinstance(text, str):
        error = FieldError(
            field="text", message="must be a string", hint="send what the policy was written as"
        )
        raise invalid([error])
    if len(text.encode()) > MAX_TEXT_BYTES:
        message = f"is larger than {MAX_TEXT_BYTES} bytes"
        error = FieldError(field="text", message=message, hint="send the document alone, or a shorter text")
        raise PayloadTooLargeError(f"{error.field}: {error.message}", errors=(error,))
    return body["policy"], text


def _paused(body: JsonObject) -> bool:
    paused = body.get("paused")
    if isinstance(paused, bool) and len(body) == 1:
        return paused
    error = FieldError(
        field="paused",
        message="must be the only key, and true or false",
        hint='send {"paused": true} or {"paused": false}',
    )
    raise invalid([error])


def _pools(*policies: Policy) -> list[str]:
    return sorted({pool.name for policy in policies for pool in policy.pools})
