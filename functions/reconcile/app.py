"""Reconcile the table with SageMaker. Trigger: EventBridge Scheduler, every minute."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.bootstrap import wiring

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    with wiring().measured():
        repairs = wiring().reconciler.run()
        wiring().samples.extend(repairs.samples())
    for failure in repairs.failures:
        logger.warning("left for the next run", exc_info=failure)
    logger.info("reconciled", changed=repairs.changed, failures=len(repairs.failures))
