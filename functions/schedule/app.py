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
from trainmaster.core.planning.chains import GOES_ON_FOR, Next, hops_of_next, what_next
from trainmaster.services.deadline import Deadline
from trainmaster.services.scheduler.pass_summary import Chain, Summary

MARGIN = timedelta(seconds=30)
"""Of the function's timeout, for what was begun last: a claim is followed by its Create."""
LONGEST = timedelta(seconds=20)
"""It holds one of the few places for all pools. What is left to do by then comes behind those who wait."""
logger = Logger()


@dataclass(slots=True)
class _Asked:
    """Wake-ups of one pool."""

    message_ids: list[str] = field(default_factory=list)
    hops: int = 0


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answers which messages failed, so that only they come back (ReportBatchItemFailures).

    All pools have one deadline, and each its share of what the ones before it left; those that are known to
    have much to do come last. What is not finished by then is asked for again, not left to the
    queue's visibility timeout. A wake-up that was sent before the last pass over its pool began has had its
    answer.
    """
    deadline = wiring().deadline(context.get_remaining_time_in_millis, margin=MARGIN).within(LONGEST)
    asked, failed = _asked(event["Records"])
    in_turn = sorted(asked.items(), key=lambda one: one[1].hops > 0)
    for number, (pool, one) in enumerate(in_turn):
        share = deadline.share(len(asked) - number)
        try:
            summary = _run(pool, share, hops=one.hops)
        except Exception:  # one pool must not keep the others waiting
            logger.exception("the pass failed", pool=pool)
            failed += one.message_ids
            continue
        if summary.failures:
            failed += one.message_ids
        _leave(pool, summary)
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
            hops = wake_up.hops if _is_first(record) else 0
            if not hops and _is_answered(wake_up.pool, record):
                continue
            one = asked.setdefault(wake_up.pool, _Asked())
            one.message_ids.append(record["messageId"])
            one.hops = max(one.hops, hops)
    return asked, unreadable


def _is_first(record: dict[str, Any]) -> bool:
    """What comes again comes late: others may be at its pool by now."""
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1)) == 1


def _is_answered(pool: str, record: dict[str, Any]) -> bool:
    sent = record.get("attributes", {}).get("SentTimestamp")
    if sent is None:
        return False
    rung_at = datetime.fromtimestamp(int(sent) / 1000, tz=UTC)
    return wiring().scheduler.has_answered(pool, rung_at)


def _run(pool: str, deadline: Deadline, *, hops: int) -> Summary:
    with wiring().measured():
        summary = wiring().scheduler.run(pool, deadline=deadline, hops=hops)
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
        left_alone=summary.left_alone,
    )
    return summary


def _leave(pool: str, summary: Summary) -> None:
    """To the next pass; where there is none, the minute's wake-up goes on."""
    until = summary.chain.until if summary.chain else None
    failed, did_something = bool(summary.failures), bool(summary.done)
    comes = what_next(
        summary.hops,
        until=until,
        unfinished=summary.unfinished,
        failed=failed,
        did_something=did_something,
    )
    if summary.unfinished and not failed and comes is not Next.ONE_MORE:
        with wiring().measured():
            wiring().samples.append(Sample(metric=CHAINS_ENDED, value=1, of=pool))
        logger.warning("not finished, and not asked again", pool=pool, hops=summary.hops)
    try:
        if summary.woken:
            wiring().wake_ups.send(sorted(summary.woken))
        if comes is Next.ONE_MORE:
            _ask_again(pool, hops_of_next(summary.hops, did_something=did_something), summary.chain)
        elif comes is not Next.NOTHING:
            is_over = wiring().store.change_chain(pool, until, None)
            if is_over and comes is Next.LAST_LOOK:
                wiring().wake_ups.send([pool])
    except UnavailableError as error:
        logger.warning("could not ask again", pool=pool, exc_info=error)


def _ask_again(pool: str, hops: int, chain: Chain | None) -> None:
    """Unless others have begun to meanwhile. First it is noted, so that the next pass finds it."""
    if chain is None:  # nobody looked, or the policy has no such pool
        wiring().wake_ups.send([pool], hops=hops)
        return
    until = wiring().clock() + GOES_ON_FOR
    until = until.replace(microsecond=until.microsecond // 1000 * 1000)
    if not wiring().store.change_chain(pool, chain.until, until):
        return
    try:
        wiring().wake_ups.send([pool], hops=hops)
    except UnavailableError:
        wiring().store.change_chain(pool, until, None)
        raise
