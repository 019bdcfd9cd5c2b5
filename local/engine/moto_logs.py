"""FilterLogEvents by a prefix of the streams' names, which moto overlooks."""

import json
from dataclasses import replace

from moto.logs.models import logs_backends

from local.engine.calls import AwsCall
from local.wire import AwsError, Request

_NO_STREAM = "*"
"""No stream can be called so, and to moto an empty list means all streams."""


def with_streams_named(request: Request, call: AwsCall, account_id: str) -> Request:
    """Return the request with the names of the streams in place of their prefix.

    Raises:
        AwsError: it has both.
    """
    params = dict(call.params)
    prefix = params.pop("logStreamNamePrefix", None)
    if prefix is None:
        return request
    if params.get("logStreamNames"):
        raise AwsError(
            "InvalidParameterException",
            "logStreamNames and logStreamNamePrefix must not be specified together",
        )
    group = logs_backends[account_id][call.region].groups.get(params.get("logGroupName"))
    names = [name for name in group.streams if name.startswith(prefix)] if group is not None else []
    return replace(request, body=json.dumps(params | {"logStreamNames": names or [_NO_STREAM]}).encode())
