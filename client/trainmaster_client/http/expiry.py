"""Credentials that have expired: how AWS and botocore say so, and new ones in their place.

Credentials of SSO, of a role or of a process renew themselves. Those of the environment or of the shared
files are read once, when a session is first used. A program that runs for days is given new ones there, by a
login in another shell, so they are read again once AWS calls the old ones expired.
"""

import boto3
import botocore.exceptions
import botocore.session
from botocore.credentials import CredentialResolver, Credentials, RefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError

from trainmaster_client.errors import CredentialsError, ExpiredCredentialsError

EXPIRED_CODES = frozenset({"ExpiredToken", "ExpiredTokenException"})
"""Source: SageMaker API reference, Common Errors; STS API reference, Common Errors."""
_LOGIN_IS_OVER: tuple[type[Exception], ...] = tuple(
    getattr(botocore.exceptions, name)
    for name in (
        "UnauthorizedSSOTokenError",
        "SSOTokenLoadError",
        "TokenRetrievalError",
        "LoginRefreshRequired",
        "LoginTokenLoadError",
    )
    if hasattr(botocore.exceptions, name)
)
"""Botocore's errors that need a login; looked up by name, as an older botocore lacks some of them."""
_READ_ONCE = frozenset({"env", "shared-credentials-file", "config-file"})
"""``method`` of credentials that a session never reads again. Source: botocore.credentials, METHOD."""


def is_expired(error: BaseException) -> bool:
    """Tell whether botocore raised this because a new login is needed."""
    if isinstance(error, ClientError):
        return error.response.get("Error", {}).get("Code") in EXPIRED_CODES
    return isinstance(error, _LOGIN_IS_OVER) or _is_vain_refresh(error)


def _is_vain_refresh(error: BaseException) -> bool:
    """Tell whether a refresh brought expired credentials: that is a bare RuntimeError, known by its place."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    raised_in = "" if frame is None else frame.tb_frame.f_globals.get("__name__", "")
    return isinstance(error, RuntimeError) and raised_in == "botocore.credentials"


CREDENTIAL_ERRORS = (BotoCoreError, ClientError, RuntimeError)
"""Errors that a session raises while it loads or renews its credentials."""


def unusable(error: Exception) -> CredentialsError:
    """Return this client's error for what a session raised instead of giving credentials."""
    why = f"{' '.join(str(error).split()).rstrip('.')}."
    return ExpiredCredentialsError(why) if is_expired(error) else CredentialsError(why)


def is_renewable(session: boto3.Session) -> bool:
    """Tell whether a new login can reach a session that exists; keys that a program gave it stay."""
    credentials = session.get_credentials()
    if isinstance(credentials, RefreshableCredentials):
        return True
    return _is_read_once(credentials) and _source(session) is not None


def renew(session: boto3.Session) -> bool:
    """Read expired credentials again, for the session and every client that was made from it.

    Clients share the object that the session has, so it is changed in place.

    Returns:
        True where they are others than before: what AWS refused is worth sending again.
    """
    credentials, source = session.get_credentials(), _source(session)
    if source is None or not _is_read_once(credentials):
        return False
    assert credentials is not None
    try:
        new = _read_again(source, credentials.method)
    except CREDENTIAL_ERRORS:
        return False
    if new is None or (new.access_key, new.token) == (credentials.access_key, credentials.token):
        return False
    credentials.access_key, credentials.secret_key, credentials.token = (
        new.access_key,
        new.secret_key,
        new.token,
    )
    return True


def _is_read_once(credentials: Credentials | None) -> bool:
    return type(credentials) is Credentials and credentials.method in _READ_ONCE


def _read_again(source: boto3.Session, method: str) -> Credentials | None:
    """Read what the same place holds now; None where it has none, and another place would give others.

    A profile that is named switches the environment off, so it is named for the files alone.
    """
    profile = None if method == "env" else source.profile_name
    credentials = botocore.session.Session(profile=profile).get_credentials()
    return credentials if credentials is not None and credentials.method == method else None


def _source(session: boto3.Session) -> boto3.Session | None:
    """Return the session whose chain of providers gave the credentials; None if that is not known."""
    provider = session._session.get_component("credential_provider")  # noqa: SLF001  boto3 has no other way
    if isinstance(provider, CredentialResolver):
        return session
    source = getattr(provider, "source", None)
    return source if isinstance(source, boto3.Session) else None
