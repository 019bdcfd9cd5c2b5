"""What an answer that is not the API's own says about the request that it refuses."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from trainmaster_client import errors
from trainmaster_client.errors.remedies import ADVICE
from trainmaster_client.errors.troubles import Trouble
from trainmaster_client.http.answers import Answer, Skew, skew_of, trouble_of

NOW = datetime(2026, 11, 22, 1, 0, tzinfo=UTC)
DENY = "User: arn:aws:iam::1:user/a is not authorized to perform: execute-api:Invoke on resource: r"


def answer(
    status: int = 403, kind: str | None = None, message: str = "no", body: bytes | None = None, **headers: str
) -> Answer:
    spelled = {"content-type": "application/json", "date": "Sun, 22 Nov 2026 01:00:00 GMT"}
    spelled |= {name.replace("_", "-"): value for name, value in headers.items()}
    if kind is not None:
        spelled["x-amzn-errortype"] = kind
    return Answer(
        status=status,
        headers=spelled,
        body=json.dumps({"message": message}).encode() if body is None else body,
    )


TWENTY_MINUTES_AHEAD = "Sun, 22 Nov 2026 00:40:00 GMT"
TWENTY_MINUTES_BEHIND = "Sun, 22 Nov 2026 01:20:00 GMT"


@pytest.mark.parametrize(
    ("refusal", "trouble"),
    [
        pytest.param({"kind": "ExpiredTokenException"}, "expired-credentials", id="expired token"),
        pytest.param({"kind": "UnrecognizedClientException"}, "unknown-key", id="unknown key"),
        pytest.param({"kind": "InvalidSignatureException"}, "wrong-signature", id="wrong secret or region"),
        pytest.param(
            {"kind": "InvalidSignatureException", "date": TWENTY_MINUTES_AHEAD}, "clock", id="clock ahead"
        ),
        pytest.param(
            {"kind": "InvalidSignatureException", "date": TWENTY_MINUTES_BEHIND}, "clock", id="clock behind"
        ),
        pytest.param(
            {"kind": "InvalidSignatureException", "date": "yesterday"}, "wrong-signature", id="odd date"
        ),
        pytest.param(
            {"kind": "ExpiredTokenException", "date": TWENTY_MINUTES_AHEAD},
            "expired-credentials",
            id="expired, and a wrong clock",
        ),
        pytest.param({"kind": "IncompleteSignatureException"}, "wrong-signature", id="incomplete"),
        pytest.param({"kind": "MissingAuthenticationTokenException"}, "wrong-stage", id="no such path"),
        pytest.param({"kind": "ForbiddenException"}, "wrong-endpoint", id="another VPC endpoint"),
        pytest.param(
            {"kind": "AccessDeniedException", "message": f"{DENY} with an explicit deny"},
            "denied",
            id="explicit deny",
        ),
        pytest.param(
            {
                "kind": "AccessDeniedException",
                "message": f"{DENY} because no resource-based policy allows the execute-api:Invoke action",
            },
            "not-a-caller",
            id="nobody allows it",
        ),
        pytest.param({"kind": "AccessDeniedException:http://x/"}, "not-a-caller", id="type with an address"),
        pytest.param({"kind": "SomethingNewException"}, "forbidden", id="unknown type"),
        pytest.param({}, "forbidden", id="no type"),
        pytest.param(
            {"status": 429, "kind": "TooManyRequestsException"}, "too-many-requests", id="throttled"
        ),
        pytest.param({"status": 504, "message": "Endpoint request timed out"}, "api-failed", id="504"),
        pytest.param({"status": 502, "body": b"<html>"}, "api-failed", id="502 of a proxy"),
        pytest.param({"status": 200, "body": b"<html>"}, "not-the-api", id="a web page"),
        pytest.param({"status": 403, "body": b"<html>"}, "not-the-api", id="a proxy that forbids"),
        pytest.param({"status": 302, "location": "https://sign.in/"}, "not-the-api", id="a redirect"),
        pytest.param({"status": 413, "kind": "RequestEntityTooLargeException"}, None, id="too large"),
        pytest.param({"status": 200}, None, id="a good answer"),
        pytest.param({"content_type": "application/problem+json"}, None, id="the API's own 403"),
        pytest.param({"status": 500, "trainmaster_version": "0.1.0"}, None, id="the API's own 500"),
    ],
)
def test_the_gateways_refusals_are_told_apart(refusal: dict[str, Any], trouble: str | None) -> None:
    assert trouble_of(answer(**refusal), now=NOW) == trouble


@pytest.mark.parametrize(
    ("date", "says", "is_allowed"),
    [
        ("Sun, 22 Nov 2026 00:40:00 GMT", "20 minutes ahead of the API's", False),
        ("Sat, 21 Nov 2026 22:00:00 GMT", "3 hours ahead of the API's", False),
        ("Sun, 29 Nov 2026 01:00:00 GMT", "7 days behind the API's", False),
        ("Sun, 22 Nov 2026 01:05:01 GMT", "5 minutes behind the API's", False),
        ("Sun, 22 Nov 2026 01:05:00 GMT", "5 minutes behind the API's", True),
        ("Sun, 22 Nov 2026 01:01:30 GMT", "90 s behind the API's", True),
        ("Sun, 22 Nov 2026 01:00:00 GMT", "0 s behind the API's", True),
    ],
)
def test_a_clock_may_be_five_minutes_off(date: str, says: str, *, is_allowed: bool) -> None:
    skew = skew_of(answer(date=date), now=NOW)
    assert skew is not None
    assert (str(skew), skew.is_allowed) == (says, is_allowed)


@pytest.mark.parametrize("date", ["", "now", "Sun, 22 Nov 2026 01:00:00 -0000"])
def test_without_a_date_that_means_an_instant_there_is_nothing_to_compare(date: str) -> None:
    assert skew_of(answer(date=date), now=NOW) is None


def test_ahead_and_behind_are_alike() -> None:
    assert not Skew(ahead=timedelta(minutes=6)).is_allowed
    assert not Skew(ahead=timedelta(minutes=-6)).is_allowed


def test_every_trouble_has_a_cause_and_a_remedy_and_no_two_have_the_same() -> None:
    assert set(ADVICE) == set(Trouble)
    for part in ("cause", "remedy"):
        texts = [getattr(advice, part) for advice in ADVICE.values()]
        assert len(set(texts)) == len(texts)
        assert all(text.endswith(".") and len(text) < 120 and "\n" not in text for text in texts)


def leaves(kind: type[BaseException]) -> set[type[BaseException]]:
    return {kind}.union(*(leaves(one) for one in kind.__subclasses__()))


def test_every_error_stands_in_the_tree_at_the_top_of_its_module() -> None:
    drawn = errors.__doc__ or ""
    assert [one.__name__ for one in leaves(errors.TrainmasterClientError) if one.__name__ not in drawn] == []
