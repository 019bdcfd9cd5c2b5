"""A call of SageMaker on its way: what handlers see of it, and credentials that expire meanwhile."""

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

import boto3

from trainmaster_client.hooks.botocore_events import Answer, Where
from trainmaster_client.http.expiry import CREDENTIAL_ERRORS, is_expired, renew, unusable


@dataclass(frozen=True, slots=True, kw_only=True)
class InterceptedCall:
    """A call that a client is about to send to SageMaker."""

    operation: str
    body: dict[str, Any]
    where: Where
    key: str | None
    """Idempotency key in the form that ``ApiClient.add_job`` takes; None: the call is not a gateway's."""
    sent: MutableMapping[str, Any]
    """The request that goes to SageMaker if no handler answers: its ``body`` may be replaced."""


def answered_patiently(
    handle: Callable[[InterceptedCall], Answer | None], call: InterceptedCall, boto_session: boto3.Session
) -> Answer | None:
    """Handle the call, again with new credentials where AWS called the old ones expired.

    A gateway renews its own. Raises ExpiredCredentialsError where there are no new ones.
    """
    try:
        return handle(call)
    except CREDENTIAL_ERRORS as error:
        if not is_expired(error) or call.key is not None:
            raise
        if renew(boto_session):
            return handle(call)
        raise unusable(error) from error
