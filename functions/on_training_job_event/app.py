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
"""Of the function's timeout, for the call made last."""
ON_ITS_WAY = timedelta(seconds=55)
"""For the same where nothing has ended: others wait for their turn too, and reconcile looks at it anyway."""
logger = Logger()


@logger.inject_lambda_context
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """The event is a hint: what counts is what DescribeTrainingJob says now."""
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
    """A map in events, a list in requests; one without tags, or with others, proves nothing."""
    if isinstance(tags, list):
        tags = {tag.get("Key"): tag.get("Value") for tag in tags if isinstance(tag, dict)}
    return tags.get(TAG_STACK) if isinstance(tags, dict) else None
