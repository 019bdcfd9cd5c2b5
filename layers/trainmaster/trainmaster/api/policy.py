"""GET and PUT /policy, PUT /policy/paused: for admins."""

import re
from dataclasses import replace
from http import HTTPStatus

from trainmaster.api.policy_dry_run import try_policy
from trainmaster.api.request_context import Answer, Visit, flag
from trainmaster.api.ringing import ring
from trainmaster.api.stranding import closed_where_less, refuse_strandings
from trainmaster.api.views import policy_view
from trainmaster.core.errors import FieldError, NotFoundError, PolicyViolationError
from trainmaster.core.policy import Policy, parse_policy
from trainmaster.core.records import StoredPolicy
from trainmaster.core.request.strict_json import JsonObject, parse_object
from trainmaster.core.request_errors import invalid, quoted

_REVISION = re.compile(r"[1-9][0-9]{0,8}")


def show_policy(visit: Visit) -> Answer:
    """The policy in force, or what an earlier revision said."""
    wanted = visit.call.parameters("revision").get("revision")
    if wanted is None:
        return Answer(status=HTTPStatus.OK, body=policy_view(visit.stored, visit.policy.warnings))
    found = visit.outside.policies.revision(_revision(wanted))
    if found is None:
        raise NotFoundError(f"there is no revision {wanted}; the newest is {visit.stored.revision}")
    earlier = replace(found, paused=visit.stored.paused)
    return Answer(status=HTTPStatus.OK, body=policy_view(earlier, _warnings(found)))


def put_policy(visit: Visit) -> Answer:
    """Replace the policy read on entering; if another admin was faster, this one may try again (503)."""
    dry_run = flag(visit.call, "dry_run", default=False)
    document = _body(visit)
    policy = parse_policy(document)
    if dry_run:
        return _tried(visit, document, policy)
    pools = _pools(visit.policy, policy)
    with closed_where_less(visit, policy):
        refuse_strandings(visit.policy, policy, visit.outside.reader)
        stored = visit.outside.policies.put(document, pools=pools, replaces=visit.stored)
    ring(visit.outside.doorbell, pools)
    return Answer(status=HTTPStatus.OK, body=policy_view(stored, policy.warnings))


def _tried(visit: Visit, document: JsonObject, policy: Policy) -> Answer:
    """What the put would answer, and what it would do to jobs; nothing is changed."""
    refuse_strandings(visit.policy, policy, visit.outside.reader)
    next_one = replace(visit.stored, revision=visit.stored.revision + 1, document=document)
    trial = try_policy(visit, policy)
    more = {"changes": list(trial.changes), "truncated": trial.is_truncated}
    return Answer(status=HTTPStatus.OK, body=policy_view(next_one, policy.warnings) | more)


def put_paused(visit: Visit) -> Answer:
    visit.call.parameters()
    paused = _paused(_body(visit))
    stored = visit.stored
    if paused is not stored.paused:
        pools = _pools(visit.policy)
        stored = visit.outside.policies.set_paused(paused, pools=pools, replaces=stored)
        ring(visit.outside.doorbell, pools)
    return Answer(status=HTTPStatus.OK, body=policy_view(stored, visit.policy.warnings))


def _revision(text: str) -> int:
    if _REVISION.fullmatch(text):
        return int(text)
    error = FieldError(
        field="query.revision", message=f"{quoted(text)} is no revision", hint="revisions are 1, 2, 3 ..."
    )
    raise invalid([error])


def _warnings(stored: StoredPolicy) -> tuple[FieldError, ...]:
    """None of a document that was valid once and is not any more."""
    try:
        return parse_policy(stored.document).warnings
    except PolicyViolationError:
        return ()


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
