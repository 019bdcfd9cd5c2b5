"""The log loop of the SDK v3 reads with a client of its own, one for the process, from a session of its own.

So no hook of the user's session reaches it. It is found where the SDK keeps it once it is there, which is
before the first look at a job that is waited for with its logs.
"""

import sys
from collections.abc import Callable
from typing import Any

_MODULE = "sagemaker.core.utils.logs"


class SdkV3Logs:
    """Hooks that client once.

    Args:
        register: Puts the handlers that join the logs of attempts at the events of a client.
        region: Whose log groups they know; a client for another one is left alone.
    """

    def __init__(self, register: Callable[[Any], None], *, region: str) -> None:
        self._register = register
        self._region = region
        self._joined: object = None

    def join(self) -> None:
        """Cheap: to be called at every look at a job."""
        client = _made_client()
        if client is None or client is self._joined or client.meta.region_name != self._region:
            return
        self._register(client.meta.events)
        self._joined = client


def _made_client() -> Any:  # noqa: ANN401  boto3's
    """None where the SDK is not in use, or did not make it yet."""
    kept = getattr(sys.modules.get(_MODULE), "CloudWatchLogsClient", None)
    made = getattr(type(kept), "_instances", {}).get(kept)
    return getattr(made, "client", None)
