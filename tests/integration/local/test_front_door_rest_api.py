"""An API behind IAM authorization: one changed byte and nobody but the journal hears of the request."""

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningKeys

from local.identity.identities import Credentials
from local.wire import AwsError, Principal, Request, Response
from tests.integration.local.bare_twin import BareTwin, bare_twin

START = datetime.now(UTC) - timedelta(days=3)
PREFIX = "/abc123/prod"
HEADERS = {"Content-Type": "application/json", "User-Agent": "another sdk"}
INVALID = "InvalidSignatureException"


@dataclass(frozen=True, kw_only=True)
class Sent:
    method: str
    target: str
    body: bytes
    headers: dict[str, str]


@dataclass
class Api:
    """What the handler got."""

    twin: BareTwin
    requests: list[tuple[Request, Principal]] = field(default_factory=list)

    def handle(self, request: Request, principal: Principal) -> Response:
        self.requests.append((request, principal))
        return Response(status=201, body=b'{"ok": true}', headers={"Content-Type": "application/json"})

    def signed(
        self,
        keys: Credentials,
        *,
        method: str = "POST",
        path: str = "/add-job?dry_run=true&x=a%20b",
        body: bytes = b'{"a": 1}',
        service: str = "execute-api",
        region: str = "us-east-1",
        at: datetime | None = None,
        auth: type[SigV4Auth] = SigV4Auth,
    ) -> Sent:
        url = f"{self.twin.door.endpoint_url}{PREFIX}{path}"
        request = AWSRequest(method, url, data=body, headers=HEADERS)
        signing = SigningKeys(keys.access_key_id, keys.secret_access_key, keys.session_token)
        moment = (at or datetime.now(UTC)).replace(tzinfo=None)
        with patch("botocore.auth.get_current_datetime", return_value=moment):
            auth(signing, service, region).add_auth(request)
        headers = {name: str(value) for name, value in request.headers.items()}
        return Sent(method=method, target=f"{PREFIX}{path}", body=body, headers=headers)

    def send(self, sent: Sent) -> tuple[int, dict[str, Any]]:
        host = self.twin.door.endpoint_url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=10)
        connection.request(sent.method, sent.target, sent.body, sent.headers)
        answer = connection.getresponse()
        body = json.loads(answer.read())
        connection.close()
        return answer.status, body


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BareTwin]:
    with bare_twin(tmp_path_factory.mktemp("twin"), manual_from=START) as made:
        yield made


@pytest.fixture
def api(twin: BareTwin) -> Api:
    made = Api(twin)
    twin.door.mount_rest_api(PREFIX, made.handle)
    twin.journal_path.write_text("")
    return made


def test_a_signed_request_reaches_the_handler_as_it_was_sent(api: Api) -> None:
    assert api.send(api.signed(api.twin.admin)) == (201, {"ok": True})
    request, principal = api.requests[0]
    assert (request.method, request.raw_path, request.query, request.body) == (
        "POST",
        f"{PREFIX}/add-job",
        "dry_run=true&x=a%20b",
        b'{"a": 1}',
    )
    assert principal == api.twin.admin.principal
    call = api.twin.calls()[0]
    assert {
        name: call[name] for name in ("principal", "service", "operation", "params", "status", "error_code")
    } == {
        "principal": "arn:aws:iam::123456789012:user/local-admin",
        "service": "execute-api",
        "operation": "POST /add-job",
        "params": {"query": {"dry_run": "true", "x": "a b"}, "body": {"a": 1}},
        "status": 201,
        "error_code": None,
    }


@pytest.mark.parametrize(
    "path", ["/jobs/a%2Fb", "/jobs/a%20b", "/jobs/%C3%BC", "/jobs/a//b/../c", "/jobs?b=2&a=1&a=0&empty=", "/"]
)
def test_paths_and_queries_of_all_kinds_verify(api: Api, path: str) -> None:
    assert api.send(api.signed(api.twin.admin, method="GET", path=path, body=b""))[0] == 201


def test_a_session_of_a_role_is_the_caller(api: Api) -> None:
    keys = api.twin.identities.assume("arn:aws:iam::123456789012:role/path/engineer", "anna")
    assert api.send(api.signed(keys))[0] == 201
    principal = api.requests[0][1]
    assert principal.arn == "arn:aws:sts::123456789012:assumed-role/engineer/anna"
    assert principal.role_arn == "arn:aws:iam::123456789012:role/path/engineer"


def test_a_user_that_iam_made_signs_with_his_own_key(api: Api) -> None:
    iam = api.twin.client("iam")
    iam.create_user(UserName="bob")
    made = iam.create_access_key(UserName="bob")["AccessKey"]
    keys = replace(
        api.twin.admin, access_key_id=made["AccessKeyId"], secret_access_key=made["SecretAccessKey"]
    )
    assert api.send(api.signed(keys))[0] == 201
    assert api.requests[0][1].arn == "arn:aws:iam::123456789012:user/bob"
    iam.update_access_key(UserName="bob", AccessKeyId=keys.access_key_id, Status="Inactive")
    assert api.send(api.signed(keys))[0] == 403


def test_what_the_handler_refuses_is_an_error_of_a_known_caller(api: Api) -> None:
    def refuse(_request: Request, _principal: Principal) -> Response:
        raise AwsError("AccessDeniedException", "not you", status=403)

    api.twin.door.mount_rest_api(PREFIX, refuse)
    assert api.send(api.signed(api.twin.admin)) == (403, {"message": "not you"})
    call = api.twin.calls()[0]
    assert (call["principal"], call["error_code"]) == (api.twin.admin.principal.arn, "AccessDeniedException")


class WithoutHost(SigV4Auth):
    def headers_to_sign(self, request: AWSRequest) -> Any:
        signed = super().headers_to_sign(request)
        del signed["host"]
        return signed


class WithUserAgent(SigV4Auth):
    """Signs what botocore leaves out, as SDKs of other languages do."""

    def headers_to_sign(self, request: AWSRequest) -> Any:
        signed = super().headers_to_sign(request)
        signed["user-agent"] = request.headers["User-Agent"]
        return signed


def test_a_header_counts_when_the_client_says_that_it_is_signed(api: Api) -> None:
    sent = api.signed(api.twin.admin, auth=WithUserAgent)
    assert api.send(sent)[0] == 201
    assert api.send(replace(sent, headers=sent.headers | {"User-Agent": "a third"}))[0] == 403


def changed(name: str, change: Callable[[str], str]) -> Callable[[Api, Sent], Sent]:
    def header(_api: Api, sent: Sent) -> Sent:
        return replace(sent, headers=sent.headers | {name: change(sent.headers[name])})

    return header


def flip(text: str) -> str:
    return text[:-1] + ("0" if text[-1] != "0" else "1")


def without(name: str) -> Callable[[Api, Sent], Sent]:
    return lambda _api, sent: replace(sent, headers={k: v for k, v in sent.headers.items() if k != name})


TAMPERINGS: dict[str, tuple[Callable[[Api, Sent], Sent], str]] = {
    "body": (lambda _api, sent: replace(sent, body=b'{"a": 2}'), INVALID),
    "body emptied": (lambda _api, sent: replace(sent, body=b""), INVALID),
    "method": (lambda _api, sent: replace(sent, method="PUT"), INVALID),
    "path": (lambda _api, sent: replace(sent, target=sent.target.replace("add-job", "add-joc")), INVALID),
    "path encoded": (
        lambda _api, sent: replace(sent, target=sent.target.replace("add-job", "add%2Djob")),
        INVALID,
    ),
    "query value": (lambda _api, sent: replace(sent, target=sent.target.replace("true", "trud")), INVALID),
    "query added": (lambda _api, sent: replace(sent, target=sent.target + "&y=1"), INVALID),
    "query removed": (lambda _api, sent: replace(sent, target=sent.target.partition("?")[0]), INVALID),
    "signature": (changed("Authorization", flip), INVALID),
    "date": (changed("X-Amz-Date", lambda text: text[:-2] + ("0Z" if text[-2] != "0" else "1Z")), INVALID),
    "date gone": (without("X-Amz-Date"), "IncompleteSignatureException"),
    "unsigned": (without("Authorization"), "MissingAuthenticationTokenException"),
    "another kind of authorization": (
        changed("Authorization", lambda _: "Basic YWxpY2U6cHc="),
        "MissingAuthenticationTokenException",
    ),
    "an unknown key": (
        changed("Authorization", lambda text: text.replace("Credential=AKIA", "Credential=AKIB")),
        "UnrecognizedClientException",
    ),
    "a made-up token": (
        lambda _api, sent: replace(sent, headers=sent.headers | {"X-Amz-Security-Token": "x"}),
        "UnrecognizedClientException",
    ),
    "a hash that is not the body's": (
        lambda _api, sent: replace(sent, headers=sent.headers | {"X-Amz-Content-SHA256": "0" * 64}),
        INVALID,
    ),
    "an unsigned body": (
        lambda _api, sent: replace(sent, headers=sent.headers | {"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}),
        INVALID,
    ),
    "host not signed": (lambda api, _: api.signed(api.twin.admin, auth=WithoutHost), INVALID),
    "another host": (
        lambda _api, sent: replace(sent, headers=sent.headers | {"Host": "localhost:1"}),
        INVALID,
    ),
    "another service": (lambda api, _: api.signed(api.twin.admin, service="s3"), INVALID),
    "another region": (lambda api, _: api.signed(api.twin.admin, region="eu-west-1"), INVALID),
    "6 minutes old": (
        lambda api, _: api.signed(api.twin.admin, at=datetime.now(UTC) - timedelta(minutes=6)),
        INVALID,
    ),
    "6 minutes early": (
        lambda api, _: api.signed(api.twin.admin, at=datetime.now(UTC) + timedelta(minutes=6)),
        INVALID,
    ),
    "6 minutes off the twin's clock": (
        lambda api, _: api.signed(api.twin.admin, at=START - timedelta(minutes=6)),
        INVALID,
    ),
    "another secret": (
        lambda api, _: api.signed(replace(api.twin.admin, secret_access_key="guessed")),
        INVALID,
    ),
}


@pytest.mark.parametrize(("tamper", "code"), TAMPERINGS.values(), ids=TAMPERINGS)
def test_what_was_tampered_with_is_403_and_never_reaches_the_handler(
    api: Api, tamper: Callable[[Api, Sent], Sent], code: str
) -> None:
    status, body = api.send(tamper(api, api.signed(api.twin.admin)))
    assert (status, set(body)) == (403, {"message"})
    assert api.requests == []
    (call,) = api.twin.calls()
    assert (call["principal"], call["service"], call["status"], call["error_code"]) == (
        None,
        "execute-api",
        403,
        code,
    )


def test_a_token_that_is_missing_is_403(api: Api) -> None:
    keys = api.twin.identities.assume("arn:aws:iam::123456789012:role/engineer", "anna")
    assert api.send(api.signed(replace(keys, session_token=None)))[0] == 403


@pytest.mark.parametrize(
    "at",
    [
        pytest.param(START, id="by the twin's clock"),
        pytest.param(START + timedelta(minutes=4), id="nearly five minutes off the twin's clock"),
        pytest.param(None, id="by the machine's clock"),
    ],
)
def test_a_date_is_fresh_by_either_clock(api: Api, at: datetime | None) -> None:
    assert api.send(api.signed(api.twin.admin, at=at))[0] == 201


@pytest.mark.parametrize(
    ("at", "said"),
    [
        (
            START - timedelta(minutes=6),
            "Signature expired: {at} is now earlier than {bound} ({now} - 5 min.)",
        ),
        (
            START + timedelta(minutes=6),
            "Signature not yet current: {at} is still later than {bound} ({now} + 5 min.)",
        ),
    ],
    ids=["old", "early"],
)
def test_a_date_that_is_not_fresh_is_refused_in_the_words_of_aws(api: Api, at: datetime, said: str) -> None:
    bound = START + timedelta(minutes=-5 if at < START else 5)
    stamps = {name: f"{one:%Y%m%dT%H%M%SZ}" for name, one in {"at": at, "bound": bound, "now": START}.items()}
    assert api.send(api.signed(api.twin.admin, at=at)) == (403, {"message": said.format(**stamps)})


def test_a_handler_that_breaks_is_500_and_its_caller_is_in_the_journal(api: Api) -> None:
    def broken(_request: Request, _principal: Principal) -> Response:
        raise KeyError

    api.twin.door.mount_rest_api(PREFIX, broken)
    assert api.send(api.signed(api.twin.admin)) == (500, {"message": "Internal server error"})
    assert api.twin.calls()[0]["principal"] == api.twin.admin.principal.arn


def test_an_error_on_demand_works_for_a_route(api: Api) -> None:
    api.twin.faults.set("POST /add-job", "InternalServerError")
    assert api.send(api.signed(api.twin.admin))[0] == 500
    assert api.send(api.signed(api.twin.admin))[0] == 201


def test_a_deeply_nested_body_does_not_break_the_journal(api: Api) -> None:
    for body in (b"[" * 900 + b"]" * 900, b"[" * 100_000, b"9" * 5000, b'{"p": NaN}'):
        assert api.send(api.signed(api.twin.admin, body=body))[0] == 201
    assert len(api.twin.calls()) == 4
