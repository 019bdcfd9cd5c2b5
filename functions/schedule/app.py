"""Scheduling passes. Trigger: the wake-up queue; one pass a distinct pool, however many wake-ups."""

from collections import defaultdict
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.adapters.wake_ups import pool_of
from trainmaster.bootstrap import wiring
from trainmaster.core.planning.actions import subject
from trainmaster.services.scheduler.passes import LONGEST, Scheduler, Summary

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answers which messages failed, so that only they come back (ReportBatchItemFailures)."""
    wake_ups_by_pool, unreadable = _wake_ups(event["Records"])
    failed = list(unreadable)
    for pool, message_ids in wake_ups_by_pool.items():
        with wiring().measured():
            summary = _run(wiring().scheduler, pool)
            wiring().samples.extend(summary.samples(pool, now=wiring().clock()))
        if summary.failures:
            failed += message_ids
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _wake_ups(records: list[dict[str, Any]]) -> tuple[dict[str, list[str]], list[str]]:
    """Message ids by pool, and those of messages that name none."""
    wake_ups_by_pool: dict[str, list[str]] = defaultdict(list)
    unreadable: list[str] = []
    for record in records:
        try:
            wake_ups_by_pool[pool_of(record["body"])].append(record["messageId"])
        except ValueError:
            logger.exception("unreadable wake-up", message_id=record["messageId"])
            unreadable.append(record["messageId"])
    return wake_ups_by_pool, unreadable


def _run(scheduler: Scheduler, pool: str) -> Summary:
    summary = scheduler.run(pool, until=scheduler.clock() + LONGEST)
    for action in summary.done:
        logger.info("done", pool=pool, action=type(action).__name__, job=subject(action))
    for error in summary.postponed:
        logger.info("postponed", pool=pool, reason=str(error), cause=str(error.__cause__ or ""))
    for failure in summary.failures:
        logger.error("failed", pool=pool, exc_info=failure)
    logger.info("pass over", pool=pool, looks=summary.looks, postponed=len(summary.postponed))
    return summary
