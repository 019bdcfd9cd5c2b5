"""An alarm of a job's GPUs changed state. Trigger: the alarm topic (SNS)."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.bootstrap import wiring
from trainmaster.services.alarm_events import watched_in

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    with wiring().measured():
        for record in event["Records"]:
            _look(record["Sns"]["Message"])


def _look(message: str) -> None:
    settings = wiring().settings
    watched = watched_in(message, stack=settings.stack, account_id=settings.account_id)
    if watched is None:
        logger.warning("not one of our alarms", characters=len(message))
        return
    pool = wiring().idle_watch.look(watched)
    if pool is not None:
        wiring().wake_ups.send([pool])
    logger.info(
        "alarm read", training_job=watched.training_job_name, kind=watched.kind, changed=pool is not None
    )
