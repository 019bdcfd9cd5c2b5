"""Routes that older stacks do not have: what the gateway says of them there, in words that help."""

from collections.abc import Iterator
from contextlib import contextmanager

from trainmaster_client.api import ApiClient
from trainmaster_client.errors import NotFoundError, TrainmasterClientError, UnexpectedAnswerError
from trainmaster_client.errors.troubles import Trouble


@contextmanager
def newer_route(api: ApiClient, path: str) -> Iterator[None]:
    """Raises UnexpectedAnswerError with the trouble OLD_STACK where the API has other routes, but not this.

    API Gateway answers an unknown path as it answers a wrong stage, so a route that every stack has is asked.
    """
    try:
        yield
    except (NotFoundError, UnexpectedAnswerError) as error:
        if isinstance(error, UnexpectedAnswerError) and error.trouble is not Trouble.WRONG_STAGE:
            raise
        if not _answers(api):
            raise
        what = f"it has no route {path}"
        raise UnexpectedAnswerError(api.api_url, what=what, trouble=Trouble.OLD_STACK) from error


def _answers(api: ApiClient) -> bool:
    try:
        api.jobs(limit="1")
    except TrainmasterClientError:
        return False
    return True
