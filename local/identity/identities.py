"""Users and roles of the twin, with their keys and the policies of roles."""

import re
import secrets
import string
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local.identity.evaluator import Statement, parse_policy
from local.wire import AwsError, Principal

_KEY_ALPHABET = string.ascii_uppercase + string.digits
_SESSION_NAME = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)
"""Source: STS API reference, AssumeRole, RoleSessionName."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    principal: Principal
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    """Temporary keys have one and are worth nothing without it."""


class Identities:
    """The keys that the twin knows. They do not expire."""

    def __init__(self, account_id: str) -> None:
        self.account_id = account_id
        self._lock = threading.Lock()
        self._credentials: dict[str, Credentials] = {}
        self._statements: dict[str, tuple[Statement, ...]] = {}

    def add_user(
        self, name: str, *, access_key_id: str | None = None, secret_access_key: str | None = None
    ) -> Credentials:
        """Add a user who may do everything; keys are made up unless they are given."""
        key = access_key_id or _new_key_id("AKIA")
        arn = f"arn:aws:iam::{self.account_id}:user/{name}"
        principal = Principal(arn=arn, account_id=self.account_id, access_key_id=key)
        return self._remember(principal, secret_access_key or secrets.token_urlsafe(30), None)

    def add_role(self, arn: str, policies: Iterable[Mapping[str, Any]]) -> None:
        """Let sessions of this role do exactly what these documents allow, from now on.

        Raises:
            ValueError: a document holds something that the evaluator does not know.
        """
        statements = tuple(statement for document in policies for statement in parse_policy(document))
        with self._lock:
            self._statements[arn] = statements

    def assume(self, role_arn: str, session_name: str) -> Credentials:
        """Return keys of a session of any role of the account. Raises AwsError as STS does."""
        prefix, _, path_and_name = role_arn.partition(":role/")
        if prefix != f"arn:aws:iam::{self.account_id}" or not path_and_name:
            message = f"not authorized to perform: sts:AssumeRole on resource: {role_arn}"
            raise AwsError("AccessDenied", message, status=403)
        if not _SESSION_NAME.fullmatch(session_name):
            raise AwsError(
                "ValidationError", f"roleSessionName {session_name!r} must match {_SESSION_NAME.pattern}"
            )
        name = path_and_name.rpartition("/")[2]
        principal = Principal(
            arn=f"arn:aws:sts::{self.account_id}:assumed-role/{name}/{session_name}",
            account_id=self.account_id,
            access_key_id=_new_key_id("ASIA"),
            role_arn=role_arn,
        )
        return self._remember(principal, secrets.token_urlsafe(30), secrets.token_urlsafe(120))

    def principal_of(self, access_key_id: str) -> Principal | None:
        credentials = self.credentials_of(access_key_id)
        return credentials.principal if credentials else None

    def credentials_of(self, access_key_id: str) -> Credentials | None:
        with self._lock:
            return self._credentials.get(access_key_id)

    def statements_of(self, role_arn: str) -> tuple[Statement, ...] | None:
        """Return the role's statements; None if ``add_role`` was never called for it."""
        with self._lock:
            return self._statements.get(role_arn)

    def _remember(self, principal: Principal, secret: str, token: str | None) -> Credentials:
        credentials = Credentials(
            principal=principal,
            access_key_id=principal.access_key_id,
            secret_access_key=secret,
            session_token=token,
        )
        with self._lock:
            self._credentials[credentials.access_key_id] = credentials
        return credentials


def _new_key_id(prefix: str) -> str:
    return prefix + "".join(secrets.choice(_KEY_ALPHABET) for _ in range(16))
