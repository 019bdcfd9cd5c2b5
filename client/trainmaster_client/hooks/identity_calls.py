"""Send the SDKs' GetCallerIdentity to the session's STS; they name AWS's own address whatever it is set to.

``get_execution_role()`` and ``default_bucket()`` ask so. Where a session's STS is elsewhere, by
``AWS_ENDPOINT_URL``, ``AWS_ENDPOINT_URL_STS`` or its profile, the call goes there: a VPC endpoint, the twin.
"""

import re
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from trainmaster_client.hooks.botocore_events import Handler, PlainClients, Where
from trainmaster_client.hooks.botocore_events import register as register_handler

_AWS = re.compile(r"https://sts(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?(/|$)")
"""Matches the addresses that ``sts_regional_endpoint`` of the SDKs makes."""


def register(events: Any, clients: PlainClients) -> None:  # noqa: ANN401  botocore's emitters
    """Register the handler. ``clients`` are those of the session whose settings count."""
    for event, handler in handlers(clients):
        register_handler(events, event, handler)


def handlers(clients: PlainClients) -> Iterator[tuple[str, Handler]]:
    def send_where_the_session_asks(
        params: MutableMapping[str, Any], context: Mapping[str, Any], **_: object
    ) -> None:
        address = urlsplit(params["url"])
        if not _is_aws(params["url"]):
            return
        own = clients.of("sts", Where(region=context["client_region"], endpoint_url=None)).meta.endpoint_url
        if not _is_aws(own):
            there = urlsplit(own)
            params["url"] = urlunsplit(address._replace(scheme=there.scheme, netloc=there.netloc))

    yield "before-call.sts.GetCallerIdentity", send_where_the_session_asks


def _is_aws(url: str) -> bool:
    return _AWS.match(url) is not None
