"""A training job changed state. Trigger: EventBridge, SageMaker Training Job State Change, any status."""

from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext
from trainmaster.bootstrap import wiring
from trainmaster.core.request.request import TAG_STACK

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
    with wiring().measured():
        pools = wiring().unmanaged.hear(name, tagged=stack is not None)
    if pools:
        wiring().wake_ups.send(pools)
    logger.info("heard", training_job=name, status=detail.get("SecondaryStatus"), changed=bool(pools))


def _stack_of(tags: object) -> str | None:
    """A map in events, a list in requests; one without tags, or with others, proves nothing."""
    if isinstance(tags, list):
        tags = {tag.get("Key"): tag.get("Value") for tag in tags if isinstance(tag, dict)}
    return tags.get(TAG_STACK) if isinstance(tags, dict) else None
