"""Scheduling passes. Trigger: the wake-up queue; one pass a distinct pool, however many wake-ups."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.adapters.wake_ups import wake_up_of
from trainmaster.bootstrap import wiring
from trainmaster.core.errors import UnavailableError
from trainmaster.core.monitoring.metrics import CHAINS_ENDED, Sample
from trainmaster.core.planning.actions import subject
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.passes import Summary

MARGIN = timedelta(seconds=30)
"""Of the function's timeout, for what was begun last: a claim is followed by its Create."""
IN_COMPANY = timedelta(seconds=20)
"""At most for one of several pools, however little the others need: it holds up its batch, and one of
the few places for all others. It asks for the next pass and comes behind those who wait by then."""
MOST_HOPS = 50
"""Passes in a row that each ask for the next one; then the minute's wake-up goes on."""
logger = Logger()


@dataclass(slots=True)
class _Asked:
    """Wake-ups of one pool."""

    message_ids: list[str] = field(default_factory=list)
    hops: int = 0


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answers which messages failed, so that only they come back (ReportBatchItemFailures).

    All pools have one deadline, and each its share of what the ones before it left, to a bound. What is not
    finished by then is asked for anew, not left to the queue's visibility timeout. A wake-up that was sent
    before the last pass over its pool began has had its answer.
    """
    deadline = wiring().deadline(context.get_remaining_time_in_millis, margin=MARGIN)
    asked, failed = _asked(event["Records"])
    for number, (pool, one) in enumerate(asked.items()):
        share = deadline.share(len(asked) - number)
        if len(asked) > 1:
            share = share.within(IN_COMPANY)
        try:
            summary = _run(pool, share)
        except Exception:  # one pool must not keep the others waiting
            logger.exception("the pass failed", pool=pool)
            failed += one.message_ids
            continue
        if summary.failures:
            failed += one.message_ids
        elif summary.unfinished:
            _ask_again(pool, one.hops + 1)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _asked(records: list[dict[str, Any]]) -> tuple[dict[str, _Asked], list[str]]:
    """Wake-ups by pool, and the ids of messages that name none."""
    asked: dict[str, _Asked] = {}
    unreadable: list[str] = []
    for record in records:
        try:
            wake_up = wake_up_of(record["body"])
        except ValueError:
            logger.exception("unreadable wake-up", message_id=record["messageId"])
            unreadable.append(record["messageId"])
        else:
            if _is_answered(wake_up.pool, record):
                continue
            one = asked.setdefault(wake_up.pool, _Asked())
            one.message_ids.append(record["messageId"])
            one.hops = max(one.hops, wake_up.hops)
    return asked, unreadable


def _is_answered(pool: str, record: dict[str, Any]) -> bool:
    sent = record.get("attributes", {}).get("SentTimestamp")
    if sent is None:
        return False
    rung_at = datetime.fromtimestamp(int(sent) / 1000, tz=UTC)
    return wiring().scheduler.has_answered(pool, rung_at)


def _run(pool: str, deadline: Deadline) -> Summary:
    with wiring().measured():
        summary = wiring().scheduler.run(pool, deadline=deadline)
        wiring().samples.extend(summary.samples(pool, now=wiring().clock()))
    for action in summary.done:
        logger.info("done", pool=pool, action=type(action).__name__, job=subject(action))
    for error in summary.postponed:
        logger.info("postponed", pool=pool, reason=str(error), cause=str(error.__cause__ or ""))
    for failure in summary.failures:
        logger.error("failed", pool=pool, exc_info=failure)
    logger.info(
        "pass over",
        pool=pool,
        looks=summary.looks,
        postponed=len(summary.postponed),
        unfinished=summary.unfinished,
    )
    return summary


def _ask_again(pool: str, hops: int) -> None:
    """The next pass of a chain; where there is none, the minute's wake-up goes on."""
    if hops > MOST_HOPS:
        with wiring().measured():
            wiring().samples.append(Sample(metric=CHAINS_ENDED, value=1, of=pool))
        logger.warning("not finished, and not asked again", pool=pool, hops=hops)
        return
    try:
        wiring().wake_ups.send([pool], hops=hops)
    except UnavailableError as error:
        logger.warning("could not ask again", pool=pool, exc_info=error)
