"""Reconcile the table with SageMaker. Trigger: EventBridge Scheduler, every minute."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.bootstrap import wiring

MARGIN = timedelta(seconds=12)
"""Time kept before the function's timeout, for the step begun last and for the last wake-ups."""
logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    deadline = wiring().deadline(context.get_remaining_time_in_millis, margin=MARGIN)
    with wiring().measured():
        repairs = wiring().reconciler.run(deadline=deadline)
        wiring().samples.extend(repairs.samples())
    for failure in repairs.failures:
        logger.warning("left for the next run", exc_info=failure)
    logger.info("reconciled", changed=repairs.changed, failures=len(repairs.failures))
