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
"""Time kept before the function's timeout, for the step begun last: a claim is followed by its Create."""
LONGEST = timedelta(seconds=20)
"""A run holds one of the few concurrent executions that all pools share; work left by then queues behind the
others."""
logger = Logger()


@dataclass(slots=True)
class _Pending:
    """Collects the wake-ups of one pool in this batch."""

    message_ids: list[str] = field(default_factory=list)
    hops: int = 0


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Run a pass for each pool; only messages whose pass failed come back (ReportBatchItemFailures).

    All pools share one deadline, each with an equal part of what its predecessors left; pools whose wake-ups
    say that the work goes on (``hops``) come last. A pass that is not finished requests its own follow-up
    instead of waiting for the queue's visibility timeout. A wake-up that was sent before the last pass over
    its pool began is already answered and is dropped.
    """
    deadline = wiring().deadline(context.get_remaining_time_in_millis, margin=MARGIN).within(LONGEST)
    wake_ups, failed = _grouped(event["Records"])
    calm_first = sorted(wake_ups.items(), key=lambda entry: entry[1].hops > 0)
    for number, (pool, pending) in enumerate(calm_first):
        share = deadline.share(len(wake_ups) - number)
        try:
            summary = _run(pool, share, hops=pending.hops)
        except Exception:  # one pool must not keep the others waiting
            logger.exception("the pass failed", pool=pool)
            failed += pending.message_ids
            continue
        if summary.failures:
            failed += pending.message_ids
        _leave(pool, summary)
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _grouped(records: list[dict[str, Any]]) -> tuple[dict[str, _Pending], list[str]]:
    """Group the wake-ups by pool; also return the ids of messages that cannot be read."""
    by_pool: dict[str, _Pending] = {}
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
            pending = by_pool.setdefault(wake_up.pool, _Pending())
            pending.message_ids.append(record["messageId"])
            pending.hops = max(pending.hops, hops)
    return by_pool, unreadable


def _is_first(record: dict[str, Any]) -> bool:
    """Tell whether the message is delivered for the first time.

    A later delivery is late, and others may be at its pool.
    """
    return int(record.get("attributes", {}).get("ApproximateReceiveCount", 1)) == 1


def _is_answered(pool: str, record: dict[str, Any]) -> bool:
    sent = record.get("attributes", {}).get("SentTimestamp")
    if sent is None:
        return False
    sent_at = datetime.fromtimestamp(int(sent) / 1000, tz=UTC)
    return wiring().scheduler.has_answered(pool, sent_at)


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
    """Leave what is unfinished to a next pass.

    If none follows, end the chain so that the minute's wake-up takes over.
    """
    until = summary.chain.until if summary.chain else None
    failed, did_something = bool(summary.failures), bool(summary.done)
    next_step = what_next(
        summary.hops,
        until=until,
        unfinished=summary.unfinished,
        failed=failed,
        did_something=did_something,
    )
    if summary.unfinished and not failed and next_step is not Next.ONE_MORE:
        with wiring().measured():
            wiring().samples.append(Sample(metric=CHAINS_ENDED, value=1, of=pool))
        logger.warning("not finished, and not asked again", pool=pool, hops=summary.hops)
    try:
        if summary.woken:
            wiring().wake_ups.send(sorted(summary.woken))
        if next_step is Next.ONE_MORE:
            _ask_again(pool, hops_of_next(summary.hops, did_something=did_something), summary.chain)
        elif next_step is not Next.NOTHING:
            is_over = wiring().store.change_chain(pool, until, None)
            if is_over and next_step is Next.LAST_LOOK:
                wiring().wake_ups.send([pool])
    except UnavailableError as error:
        logger.warning("could not ask again", pool=pool, exc_info=error)


def _ask_again(pool: str, hops: int, chain: Chain | None) -> None:
    """Request another pass, unless others have begun a chain meanwhile.

    The chain is noted before the message is sent, so that the next pass finds it; if sending fails it is
    taken back.
    """
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
