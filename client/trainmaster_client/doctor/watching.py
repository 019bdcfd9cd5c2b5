"""Whether somebody notices trouble: idle alarms, the data they need, and people who get the mails."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from trainmaster.core.memory.accelerators import gpus

from trainmaster_client.doctor.account import named_roles
from trainmaster_client.doctor.deployed import deployed_stack, outputs
from trainmaster_client.doctor.findings import AwsSaid, Finding, Seen, asked, good, skipped, worth_a_warning
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import document_of

_NAMESPACE = "/aws/sagemaker/TrainingJobs"
_PUT_METRICS = "cloudwatch:PutMetricData"
_MOST_JOBS = 10
"""Running jobs that are asked for, where IAM does not say what their roles may."""
_PENDING = "PendingConfirmation"
"""Text that stands in place of a subscription's ARN. Source: SNS API reference, Subscribe."""


def idle_alarms(seen: Seen) -> Finding:
    """Check that idle alarms are on: the stored policy may predate that default, or switch it off."""
    if seen.policy is None:
        return skipped("only admins can see the policy")
    if not any(gpus(name) for pool in seen.pools for name in _types(pool)):
        return good("no pool has GPUs")
    warnings = [warning for warning in seen.policy.get("warnings") or () if isinstance(warning, dict)]
    unwatched = [str(warning.get("message")) for warning in warnings if warning.get("field") == "idle"]
    if unwatched:
        return worth_a_warning(Trouble.IDLE_UNWATCHED, "; ".join(unwatched))
    if _document(seen).get("idle") in (False, "off"):
        return worth_a_warning(Trouble.IDLE_UNWATCHED, "the policy says idle: off")
    return good("on")


def gpu_metrics(seen: Seen) -> Finding:
    """Ask IAM what the training roles may, where it says so; else the jobs that run."""
    lacking, unknown = [], []
    roles = named_roles(seen.policy or {})
    for role in roles:
        may = _may_put_metrics(seen, role)
        lacking += [role] if may is False else []
        unknown += [role] if may is None else []
    if lacking:
        return worth_a_warning(Trouble.GPU_METRICS_MISSING, f"{', '.join(lacking)}: no {_PUT_METRICS}")
    if roles and not unknown:
        return good("the training roles may put them")
    silent = list(_silent_jobs(seen))
    if silent:
        return worth_a_warning(Trouble.GPU_METRICS_MISSING, "; ".join(silent))
    why = "IAM does not say" if roles else "no training role is known by name"
    return skipped(f"{why}; no running job lacks them")


def mail(seen: Seen) -> Finding:
    """Check mail subscriptions; one has no effect until its owner follows the link in the first mail."""
    if seen.policy is None:
        return skipped("for admins")
    stack = deployed_stack(seen)
    if isinstance(stack, Finding):
        return stack
    topic = outputs(stack).get("MailTopicArn")
    if not topic:
        return skipped("the stack has no output MailTopicArn")
    subscriptions = asked(lambda: _subscriptions(seen, topic))
    if isinstance(subscriptions, AwsSaid):
        return skipped(f"SNS does not say: {subscriptions.why}")
    confirmed = {
        subscription["Endpoint"]
        for subscription in subscriptions
        if subscription["SubscriptionArn"] != _PENDING
    }
    wanted = (_document(seen).get("notifications") or {}).get("email") or ()
    unconfirmed = sorted({str(address) for address in wanted} - confirmed)
    if unconfirmed:
        return worth_a_warning(Trouble.MAIL_UNCONFIRMED, ", ".join(unconfirmed))
    if not confirmed:
        return worth_a_warning(Trouble.MAIL_UNCONFIRMED, "nobody has a confirmed subscription")
    return good(f"confirmed subscriptions: {len(confirmed)}")


def _types(pool: Mapping[str, Any]) -> Iterator[str]:
    for field in ("capacity", "spot_capacity"):
        yield from (pool.get(field) or {})


def _document(seen: Seen) -> Mapping[str, Any]:
    document = (seen.policy or {}).get("policy")
    return document if isinstance(document, dict) else {}


def _may_put_metrics(seen: Seen, role: str) -> bool | None:
    """Tell whether the role may put metrics; None if IAM does not say."""
    namespace = {
        "ContextKeyName": "cloudwatch:namespace",
        "ContextKeyValues": [_NAMESPACE],
        "ContextKeyType": "string",
    }
    question = {"PolicySourceArn": role, "ActionNames": [_PUT_METRICS], "ContextEntries": [namespace]}
    simulation = asked(lambda: seen.client("iam").simulate_principal_policy(**question))
    if isinstance(simulation, AwsSaid):
        return None
    return all(result["EvalDecision"] == "allowed" for result in simulation["EvaluationResults"])


def _silent_jobs(seen: Seen) -> Iterator[str]:
    listed = document_of(seen.send("GET", f"/jobs?state=running&limit={_MOST_JOBS}")) or {}
    jobs = listed.get("jobs")
    names = [job.get("name") for job in jobs if isinstance(job, dict)] if isinstance(jobs, list) else []
    for name in names[:_MOST_JOBS]:
        if not isinstance(name, str):
            continue  # another team's
        job = document_of(seen.send("GET", f"/jobs/{quote(name, safe='')}")) or {}
        attempts = job.get("attempts")
        last = attempts[-1] if isinstance(attempts, list) and attempts else {}
        reason = last.get("unguarded") if isinstance(last, dict) else None
        if isinstance(reason, dict) and reason.get("code") == "no-metrics":
            yield f"{name}: {reason.get('message')}"


def _subscriptions(seen: Seen, topic: str) -> list[Mapping[str, str]]:
    pages = seen.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic)
    return [subscription for page in pages for subscription in page.get("Subscriptions", ())]
