"""STS as the twin answers it: who am I, and keys of a role."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from xml.sax.saxutils import escape

from local.engine.calls import AwsCall
from local.identity.identities import Identities
from local.wire import AwsError, Principal, Response

_DEFAULT_SECONDS = 3600
"""Source: STS API reference, AssumeRole, DurationSeconds."""


def answer(call: AwsCall, principal: Principal, identities: Identities, now: datetime) -> Response:
    match call.operation:
        case "GetCallerIdentity":
            identity = {
                "Arn": principal.arn,
                "UserId": principal.access_key_id,
                "Account": principal.account_id,
            }
            return _result("GetCallerIdentity", _elements(identity))
        case "AssumeRole":
            return _assume_role(call, identities, now)
        case _:
            raise AwsError("NotImplemented", f"the twin has no sts:{call.operation}", status=501)


def _assume_role(call: AwsCall, identities: Identities, now: datetime) -> Response:
    """Give keys of a role; they do not expire, the date only tells clients when to ask for new ones."""
    made = identities.assume(str(call.params.get("RoleArn", "")), str(call.params.get("RoleSessionName", "")))
    lasting = timedelta(seconds=int(call.params.get("DurationSeconds", _DEFAULT_SECONDS)))
    keys = {
        "AccessKeyId": made.access_key_id,
        "SecretAccessKey": made.secret_access_key,
        "SessionToken": made.session_token or "",
        "Expiration": (max(now, datetime.now(UTC)) + lasting).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    user = {"AssumedRoleId": f"AROA:{call.params['RoleSessionName']}", "Arn": made.principal.arn}
    return _result(
        "AssumeRole",
        f"<Credentials>{_elements(keys)}</Credentials><AssumedRoleUser>{_elements(user)}</AssumedRoleUser>",
    )


def _elements(values: Mapping[str, str]) -> str:
    return "".join(f"<{name}>{escape(value)}</{name}>" for name, value in values.items())


def _result(operation: str, inner: str) -> Response:
    text = (
        f'<{operation}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/">'
        f"<{operation}Result>{inner}</{operation}Result>"
        f"<ResponseMetadata><RequestId>{token_hex(16)}</RequestId></ResponseMetadata></{operation}Response>"
    )
    return Response(status=200, body=text.encode(), headers={"Content-Type": "text/xml"})
