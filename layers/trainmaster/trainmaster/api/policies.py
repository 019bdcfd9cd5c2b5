"""GET and PUT /policy, PUT /policy/paused: for admins."""

from collections.abc import Iterator
from http import HTTPStatus

from trainmaster.api.ringing import ring
from trainmaster.api.visit import Answer, ApiReader, Visit
from trainmaster.errors import FieldError, PolicyInUseError
from trainmaster.policy import Policy, parse_policy
from trainmaster.request_errors import invalid
from trainmaster.scheduling.snapshot import RunningJob, WaitingJob
from trainmaster.strict_json import JsonObject, parse_object
from trainmaster.views import policy_view

_EVERY = 1_000_000
"""More than a pool ever holds."""


def show_policy(visit: Visit) -> Answer:
    visit.call.parameters()
    return Answer(status=HTTPStatus.OK, body=policy_view(visit.stored, visit.policy.warnings))


def put_policy(visit: Visit) -> Answer:
    """Replace the policy read on entering; if another admin was faster, this one may try again (503)."""
    visit.call.parameters()
    document = _body(visit)
    policy = parse_policy(document)
    _refuse_strandings(visit.policy, policy, visit.outside.reader)
    pools = _pools(visit.policy, policy)
    stored = visit.outside.policies.put(document, pools=pools, replaces=visit.stored)
    ring(visit.outside.doorbell, pools)
    return Answer(status=HTTPStatus.OK, body=policy_view(stored, policy.warnings))


def put_paused(visit: Visit) -> Answer:
    visit.call.parameters()
    paused = _paused(_body(visit))
    stored = visit.stored
    if paused is not stored.paused:
        pools = _pools(visit.policy)
        stored = visit.outside.policies.set_paused(paused, pools=pools, replaces=stored)
        ring(visit.outside.doorbell, pools)
    return Answer(status=HTTPStatus.OK, body=policy_view(stored, visit.policy.warnings))


def _body(visit: Visit) -> JsonObject:
    call = visit.call
    return parse_object(call.body, base64=call.is_base64, content_type=call.content_type)


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


def _refuse_strandings(old: Policy, new: Policy, reader: ApiReader) -> None:
    """Nobody may be left in a pool, or with a type, that is no more. Raises PolicyInUseError."""
    errors = [error for pool in old.pools for error in _strandings(pool.name, old, new, reader)]
    if errors:
        raise PolicyInUseError("live or waiting jobs need what the new policy removes", errors=errors)


def _strandings(name: str, old: Policy, new: Policy, reader: ApiReader) -> Iterator[FieldError]:
    before, after = old.pool(name), new.pool(name)
    owned = before.instance_types if before else frozenset()
    removed = owned - (after.instance_types if after else frozenset())
    in_use = _types_in_use(name, reader) if removed or after is None else frozenset()
    if after is None and in_use:
        yield _stranding("pools", f"pool {name} has live or waiting jobs")
    elif after is not None:
        for instance_type in sorted(removed & in_use):
            field = f"pools[{new.pools.index(after)}].capacity"
            yield _stranding(field, f"pool {name} has live or waiting jobs on {instance_type}")


def _stranding(field: str, message: str) -> FieldError:
    return FieldError(field=field, message=message, hint="set its capacity to 0 and drain")


def _types_in_use(pool: str, reader: ApiReader) -> frozenset[str]:
    """Of every job that is not final: a whole queue is read, as rarely as pools are removed."""
    waiting = reader.waiting(pool, after=None, limit=_EVERY)
    parked = reader.parked(pool, after=None, limit=_EVERY)
    jobs: list[RunningJob | WaitingJob] = [*reader.running(pool), *waiting, *parked]
    return frozenset(capacity.instance_type for job in jobs for capacity in job.vector)
