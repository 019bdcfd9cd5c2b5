"""Keep sessions of launcher roles, so that a team's own right to pass a role decides."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from trainmaster.adapters.sagemaker_answers import printable
from trainmaster.adapters.turn_taking import THROTTLES
from trainmaster.core.errors import LauncherRefusedError, UnavailableError
from trainmaster.core.request.request import TAG_STACK, TAG_TEAM, Launcher

LASTS = timedelta(minutes=15)
"""Length of a session: the shortest that STS gives, so that a right taken from a role soon stops working.

Source: STS API reference, AssumeRole, DurationSeconds."""
EARLY = timedelta(minutes=1)
"""How long before its end a session is replaced: longer than one of its calls may take."""
_NAME_CHARACTERS = 64
_NOT_IN_NAME = re.compile(r"[^\w+=,.@-]", re.ASCII)
"""Characters that RoleSessionName does not allow. Source: STS API reference, AssumeRole, RoleSessionName."""


@dataclass(slots=True)
class _Session:
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while one thread requests the session; the others wait for its answer."""
    client: Any = None
    until: datetime | None = None


class LauncherSessions:
    """Keeps one session for each launcher until shortly before its end, with its own SageMaker client."""

    def __init__(
        self, make_sts: Callable[[], Any], *, client_with: Callable[..., Any], clock: Callable[[], datetime]
    ) -> None:
        """``client_with`` makes a SageMaker client with the keys that it is given."""
        self._make_sts = make_sts
        self._client_with = client_with
        self._clock = clock
        self._sessions: dict[Launcher, _Session] = {}
        self._making = threading.Lock()
        """Held while a client is made: botocore's session makes one client at a time."""
        self._sts: Any = None

    def client(self, launcher: Launcher) -> Any:
        """Return the SageMaker client that calls as the launcher.

        Raises:
            LauncherRefusedError: The role does not let the stack in, or the stack may not ask.
            UnavailableError: STS is busy or out of reach.
        """
        session = self._sessions.setdefault(launcher, _Session())
        with session.lock:
            if session.until is None or session.until <= self._clock():
                keys = self._assume(launcher)
                with self._making:
                    session.client = self._client_with(
                        aws_access_key_id=keys["AccessKeyId"],
                        aws_secret_access_key=keys["SecretAccessKey"],
                        aws_session_token=keys["SessionToken"],
                    )
                session.until = keys["Expiration"] - EARLY
            return session.client

    def forget(self, launcher: Launcher) -> None:
        """Drop a session that may have been ended early: the next call requests another one."""
        self._sessions.pop(launcher, None)

    def _assume(self, launcher: Launcher) -> dict[str, Any]:
        tags = {TAG_TEAM: launcher.team, TAG_STACK: launcher.stack}
        try:
            answer = self._client_of_sts().assume_role(
                RoleArn=launcher.role_arn,
                RoleSessionName=_NOT_IN_NAME.sub("-", f"trainmaster-{launcher.team}")[:_NAME_CHARACTERS],
                DurationSeconds=int(LASTS.total_seconds()),
                Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
            )
        except ClientError as error:
            raise _refusal(error, launcher) from error
        except BotoCoreError as error:
            raise UnavailableError(f"STS gave no session of {launcher.role_arn}: {error}") from error
        keys: dict[str, Any] = answer["Credentials"]
        return keys

    def _client_of_sts(self) -> Any:
        with self._making:
            if self._sts is None:
                self._sts = self._make_sts()
            return self._sts


def _refusal(error: ClientError, launcher: Launcher) -> LauncherRefusedError | UnavailableError:
    code, text = error.response["Error"]["Code"], printable(error.response["Error"].get("Message", ""))
    if (
        code in THROTTLES
        or error.response["ResponseMetadata"]["HTTPStatusCode"] >= HTTPStatus.INTERNAL_SERVER_ERROR
    ):
        return UnavailableError(f"STS gave no session of {launcher.role_arn}: {code}")
    return LauncherRefusedError(
        f"the launcher role {launcher.role_arn} of team {launcher.team} cannot be assumed: list it in "
        "the stack's parameter LauncherRoleArns, and let its trust policy allow the role of the function "
        f"schedule sts:AssumeRole and sts:TagSession. STS said {code}: {text}"
    )
