"""The REST API. Trigger: API Gateway, proxy integration, every method IAM-authorised."""

import gc

gc.disable()  # imports leave no garbage: a collection among them is a tenth of the cold start

from datetime import timedelta
from http import HTTPStatus
from typing import Any

import trainmaster.adapters.dynamodb  # loaded while the function starts, not in its first call
import trainmaster.adapters.wake_ups
import trainmaster.api  # noqa: F401
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.bootstrap import wiring
from trainmaster.core.monitoring.metrics import SERVER_ERRORS, Sample

gc.freeze()  # what was imported is never looked through again
gc.enable()
MARGIN = timedelta(seconds=5)
"""Time before the function's timeout at which nothing optional is begun any more: the answer is still to be
written."""
logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request.

    Bodies and headers are never logged: they may hold what only the caller should know.
    """
    wiring().deadline(context.get_remaining_time_in_millis, margin=MARGIN)
    with wiring().measured():
        answer = wiring().api(event, context)
        if answer["statusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR:
            wiring().samples.append(Sample(metric=SERVER_ERRORS, value=1))
    identity = event.get("requestContext", {}).get("identity", {})
    logger.info(
        "answered",
        method=event.get("httpMethod"),
        path=event.get("path"),
        caller=identity.get("userArn"),
        status=answer["statusCode"],
    )
    return answer
