"""The queue as static HTML, for a custom widget. Trigger: CloudWatch, with the rights of whoever looks."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.bootstrap import wiring

MARGIN = timedelta(seconds=3)
"""Time before the function's timeout at which no further pool is read."""
logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> str:
    """Render the queue and write nothing, not even metrics.

    Unreadable rows are noted by functions that may write.
    """
    wiring().deadline(context.get_remaining_time_in_millis, margin=MARGIN)
    answer = wiring().widget(event)
    logger.info("shown", characters=len(answer), described=bool(event.get("describe")))
    return answer
