"""Reconcile the table with SageMaker. Trigger: EventBridge Scheduler, every minute."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.adapters import emf
from trainmaster.bootstrap import wiring
from trainmaster.services import pass_metrics

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    repairs = wiring().reconciler.run()
    for failure in repairs.failures:
        logger.warning("left for the next run", exc_info=failure)
    emf.write(pass_metrics.of_reconcile(repairs), stack=wiring().settings.stack)
    logger.info("reconciled", changed=repairs.changed, failures=len(repairs.failures))
