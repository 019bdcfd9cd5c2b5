"""A training job changed state. Trigger: EventBridge, SageMaker Training Job State Change, any status."""

from datetime import timedelta
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.bootstrap import wiring
from trainmaster.core.errors import ThrottledError
from trainmaster.core.jobs.observations import TERMINAL_STATUSES
from trainmaster.core.request.request import TAG_STACK

MARGIN = timedelta(seconds=13)
"""Time kept before the function's timeout, so that the call made last can end."""
ON_ITS_WAY = timedelta(seconds=55)
"""The same for an event that is no end: other callers wait for their turn too, and reconcile looks at the job
anyway."""
logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Handle one event, which is a hint only: what counts is what DescribeTrainingJob says now."""
    detail = event.get("detail") or {}
    name = detail.get("TrainingJobName")
    stack = _stack_of(detail.get("Tags"))
    if not name or stack not in {None, wiring().settings.stack}:
        logger.debug("not ours", training_job=name)
        return
    has_ended = detail.get("TrainingJobStatus") in TERMINAL_STATUSES
    wiring().deadline(context.get_remaining_time_in_millis, margin=MARGIN if has_ended else ON_ITS_WAY)
    try:
        with wiring().measured():
            pools = wiring().unmanaged.hear(name, tagged=stack is not None)
    except ThrottledError:
        if has_ended:
            raise  # Lambda tries again; reconcile cannot read what the job has logged
        logger.info("left to reconcile: the account calls too often", training_job=name)
        return
    if pools:
        wiring().wake_ups.send(pools)
    logger.info("heard", training_job=name, status=detail.get("SecondaryStatus"), changed=bool(pools))


def _stack_of(tags: object) -> str | None:
    """Read the stack's tag: events have a map of tags, requests a list.

    None proves nothing: tags may be left out.
    """
    if isinstance(tags, list):
        tags = {tag.get("Key"): tag.get("Value") for tag in tags if isinstance(tag, dict)}
    return tags.get(TAG_STACK) if isinstance(tags, dict) else None
