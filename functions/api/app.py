"""The REST API. Trigger: API Gateway, proxy integration, every method IAM-authorised."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from trainmaster.bootstrap import wiring

logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Bodies and headers are never logged: they may hold what only the caller should know."""
    answer = wiring().api(event, context)
    identity = event.get("requestContext", {}).get("identity", {})
    logger.info(
        "answered",
        method=event.get("httpMethod"),
        path=event.get("path"),
        caller=identity.get("userArn"),
        status=answer["statusCode"],
    )
    return answer
