"""Assumptions of the code about jobs on training plans (group 14 of the guide), and their verdicts."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from trainmaster_client.account_check.facts import (
    Fact,
    Look,
    Need,
    Records,
    Verdict,
    agrees,
    differs,
    held_to,
    recorded,
    skipped,
)

_BLOCK_END = re.compile(r"block (\d+)")
_NEAR_SECONDS = 60.0
_ADAPTER = "trainmaster.adapters.sagemaker"
_OBSERVER = "trainmaster.services.observer"


def plan_described(plan: Mapping[str, Any]) -> Verdict | None:
    if "described" not in plan:
        return None
    summary = f"Describe: {plan['described']}; listed by its plan: {plan['listed']}; in use: {plan['in_use']}"
    return held_to(summary, holds=plan["described"] == plan["arn"] and plan["listed"] is True)


def plan_events(records: Records) -> Verdict | None:
    """Read the events of the trial; the code describes a job whose event does not name the plan."""
    job, plan = records.get("jobs", {}).get("plan"), records.get("plan")
    if job is None or plan is None:
        return None
    of_job = [event for event in records.get("events") or () if event["job"] == job["name"]]
    if not of_job:
        return None
    named = sum(event.get("plan") == plan["arn"] for event in of_job)
    return agrees(f"{named} of {len(of_job)} events have ResourceConfig.TrainingPlanArn")


def plan_block_end(records: Records) -> Verdict | None:
    plan, job = records.get("plan"), records.get("jobs", {}).get("plan", {})
    reason = job.get("final", {}).get("FailureReason") or ""
    if not plan or "ends" not in plan or not reason:
        return None
    match = _BLOCK_END.search(reason)
    if match is None:
        return differs(f"the container has no such variable: {reason!r}")
    apart = int(match[1]) / 1000 - datetime.fromisoformat(plan["ends"]).timestamp()
    return held_to(f"{match[1]}, {apart:+.0f} s from the window's end", holds=abs(apart) <= _NEAR_SECONDS)


def plan_close(plan: Mapping[str, Any]) -> Verdict | None:
    if "arn" not in plan:
        return None
    if "after_close" not in plan:
        return skipped("the window did not close meanwhile: begin 31 to 49 minutes before its end")
    return held_to(f"then it is {plan['after_close']}", holds=plan["after_close"] != "Training")


def plan_right(plan: Mapping[str, Any]) -> Verdict | None:
    """Decide by a refusal alone: a caller with every right is not told which ones were looked at."""
    answer = plan.get("answer")
    if answer is None:
        return None
    if answer["code"] is None:
        return skipped("accepted: it shows only for a caller that may not use training-plan/*")
    return agrees(answer["text"]) if ":training-plan/" in answer["text"] else None


def _fact(name: str, question: str, assumes: str, where: tuple[str, ...], judge: Any) -> Fact:  # noqa: ANN401
    return Fact(
        id=f"plan-{name}",
        group=14,
        question=question,
        assumes=assumes,
        where=where,
        look=Look.PLAN,
        judge=judge,
        needs=(Need.PLAN,),
    )


PLANNED: tuple[Fact, ...] = (
    _fact(
        "describe",
        "How do Describe and List name the plan of a job?",
        "ResourceConfig.TrainingPlanArn as it was sent; TrainingPlanArnEquals finds the job",
        (_ADAPTER,),
        recorded("plan", plan_described),
    ),
    _fact(
        "events",
        "Do events of a job on a plan name it?",
        "they may; a job that is not ours is described",
        (_OBSERVER,),
        plan_events,
    ),
    _fact(
        "block-end",
        "What does SAGEMAKER_CURRENT_CAPACITY_BLOCK_EXPIRATION_TIMESTAMP hold?",
        "the end of the open window, in milliseconds",
        ("training.launch",),
        plan_block_end,
    ),
    _fact(
        "close",
        "What becomes of a job 30 minutes before the end of its window?",
        "it trains no longer: Pending for the next window, or an end",
        (_OBSERVER,),
        recorded("plan", plan_close),
    ),
    _fact(
        "right",
        "Is CreateTrainingJob authorised on the plan, too?",
        "on training-job/* and on training-plan/*, with the same tags",
        (_ADAPTER,),
        recorded("plan", plan_right),
    ),
)
