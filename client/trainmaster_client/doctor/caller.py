"""Checks the caller's identity, and what the API lets them do."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from trainmaster_client.doctor.findings import AwsSaid, Finding, Seen, asked, bad, good, skipped
from trainmaster_client.errors import ApiUnreachableError, CredentialsError
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import Answer, document_of, is_own, trouble_of

_STS_TROUBLES: Mapping[str, Trouble] = {
    "ExpiredToken": Trouble.EXPIRED_CREDENTIALS,
    "ExpiredTokenException": Trouble.EXPIRED_CREDENTIALS,
    "InvalidClientTokenId": Trouble.UNKNOWN_KEY,
    "SignatureDoesNotMatch": Trouble.WRONG_SECRET,
    "UnrecognizedClientException": Trouble.UNKNOWN_KEY,
}
"""Error codes of the query protocol. Source: STS API reference, "Common Errors"."""


def credentials(seen: Seen) -> Finding:
    try:
        keys = seen.transport().credentials()
    except CredentialsError as error:
        return bad(error.trouble or Trouble.CREDENTIALS_UNREADABLE, str(error))
    kind = "temporary" if keys.token else "long-term"
    return good(f"{kind}, access key ...{(keys.access_key or '')[-4:]}")


def identity(seen: Seen) -> Finding:
    answer = asked(lambda: seen.client("sts").get_caller_identity())
    if not isinstance(answer, AwsSaid):
        seen.caller_arn = seen.facts["caller"] = answer["Arn"]
        return good(answer["Arn"])
    trouble = _STS_TROUBLES.get(answer.code)
    return skipped(f"STS does not say: {answer.why}") if trouble is None else bad(trouble, answer.why)


def access(seen: Seen) -> Finding:
    """Check that signature, the API's resource policy and IAM let GET /pools through."""
    try:
        answer = seen.send("GET", "/pools")
    except ApiUnreachableError as error:
        return bad(error.trouble or Trouble.NO_ANSWER, str(error))
    seen.answer = answer
    trouble = _refused(answer, seen)
    return good(f"status {answer.status}") if trouble is None else bad(trouble, _said(answer))


def team(seen: Seen) -> Finding:
    """Check the caller's team. Only admins can read the policy; usage without a name is the only team's."""
    assert seen.answer is not None, "the access is checked first"
    if seen.answer.status == HTTPStatus.FORBIDDEN:
        return bad(Trouble.NO_TEAM, _said(seen.answer))
    policy = seen.send("GET", "/policy")
    if policy.status == HTTPStatus.OK:
        seen.policy = document_of(policy)
    usage = document_of(seen.send("GET", "/usage")) or {}
    mine = f"team {usage['team']}" if isinstance(usage.get("team"), str) else "no single team"
    return good(f"{mine}, {'admin' if seen.policy is not None else 'not an admin'}")


def submitting(seen: Seen) -> Finding:
    """Check that submissions are heard, by a dry run of nothing that the API itself refuses."""
    answer = seen.send("POST", "/add-job?dry_run=true", json.dumps({}).encode())
    if is_own(answer) and answer.status == HTTPStatus.BAD_REQUEST:
        return good("POST /add-job is let through")
    return bad(_refused(answer, seen) or Trouble.NOT_THE_API, _said(answer))


def _refused(answer: Answer, seen: Seen) -> Trouble | None:
    """Return why the call was refused; None if the API itself answers, also with a 403 of its own."""
    trouble = trouble_of(answer, now=seen.now())
    if trouble is Trouble.WRONG_SIGNATURE:
        return Trouble.WRONG_SIGNATURE if seen.caller_arn is None else Trouble.WRONG_REGION
    if trouble is not None:
        return trouble
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Trouble.API_FAILED
    if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
        return Trouble.TOO_MANY_REQUESTS
    known = is_own(answer) or "pools" in (document_of(answer) or {})
    return None if known else Trouble.NOT_THE_API


def _said(answer: Answer) -> str:
    document = document_of(answer) or {}
    words = document.get("detail") or document.get("message") or document.get("Message") or ""
    return f"status {answer.status}: {words}"
