"""Verdicts on the facts that need a stack (groups 11 to 13), from what was recorded and nothing else."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from trainmaster.core.errors import TrainmasterError
from trainmaster.core.submission.identity import caller_of

from trainmaster_client.account_check.facts import Records, Verdict, differs, held_to, skipped

_METRIC_SECONDS = 300.0


_REFUSED_AT_THE_START = {("pending", "refused"), ("failed", "failed-to-start")}


def customer_key(records: Records) -> Verdict | None:
    job = records.get("customer_key")
    if job is None:
        return skipped("needs a key: TRAINMASTER_KEY=<ARN of a customer managed key>")
    outcome = f"{job['state']}: {job['reason']}"
    if job["state"] == "completed":
        return held_to(f"{outcome}; the stack may grant with it", holds=True)
    return held_to(outcome, holds=(job["state"], job["code"]) in _REFUSED_AT_THE_START)


def private_api(answers: Mapping[str, Any]) -> Verdict:
    outcome = "; ".join(
        f"{who}: {answer['status']} {answer['error_type']}: {answer['text']}"
        for who, answer in answers.items()
    )
    holds = all(
        answer["status"] == HTTPStatus.FORBIDDEN and answer["error_type"] for answer in answers.values()
    )
    return held_to(outcome, holds=holds)


def user_arn(arns: Mapping[str, str]) -> Verdict:
    outcome = f"STS: {arns['sts']}; the API: {arns['api']}"
    try:
        caller_of(arns["api"])
    except TrainmasterError as error:
        return differs(f"{outcome}; {error.detail}")
    return held_to(outcome, holds=arns["api"] == arns["sts"])


def embedded_metrics(records: Records) -> Verdict | None:
    if "metric_seconds" not in records:
        return None
    seconds = records["metric_seconds"]
    if seconds is None:
        return differs(f"none after {_METRIC_SECONDS:.0f} s")
    return held_to(f"listed after {seconds:.0f} s", holds=seconds <= _METRIC_SECONDS)


def operator_alarms(records: Records) -> Verdict | None:
    alarms = records.get("operator_alarms")
    if alarms is None:
        return None
    missing = sorted(set(records["expected_alarms"]) - set(alarms))
    ringing = sorted(name for name, state in alarms.items() if state == "ALARM")
    if missing or ringing:
        return differs(f"missing: {', '.join(missing) or 'none'}; in ALARM: {', '.join(ringing) or 'none'}")
    return held_to(f"{len(alarms)} alarms, none in ALARM", holds=True)


def dead_letters(records: Records) -> Verdict | None:
    queues = records.get("dead_letters")
    if queues is None:
        return None
    full = [f"{name}: {count}" for name, count in queues.items() if count]
    return held_to(", ".join(full) or f"{len(queues)} queues, all empty", holds=bool(queues) and not full)
