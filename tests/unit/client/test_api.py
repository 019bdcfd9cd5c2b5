"""Three places for the API's URL, in their order, and what is said when none has it."""

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, NoCredentialsError
from trainmaster_client.api import find_api_url
from trainmaster_client.errors import ApiNotConfiguredError

ENV = {"TRAINMASTER_API_URL": "https://environment/prod"}


class FakeSession(boto3.Session):
    """A session whose only service is SSM; an exception as the answer is raised."""

    def __init__(self, answer: str | Exception) -> None:
        self.answer = answer

    def client(self, service: str, **_: Any) -> Any:  # type: ignore[override]
        assert service == "ssm"
        return self

    def get_parameter(self, *, Name: str) -> Any:  # noqa: N803  boto3's
        assert Name == "/trainmaster/api-url"
        if isinstance(self.answer, Exception):
            raise self.answer
        return {"Parameter": {"Value": self.answer}}


IN_SSM = FakeSession("https://parameter/prod")


@pytest.mark.parametrize(
    ("argument", "env", "expected"),
    [
        pytest.param("https://argument/prod", ENV, "https://argument/prod", id="the argument wins"),
        pytest.param(None, ENV, "https://environment/prod", id="then the environment"),
        pytest.param(None, {}, "https://parameter/prod", id="then the parameter"),
        pytest.param("", {"TRAINMASTER_API_URL": ""}, "https://parameter/prod", id="empty is not given"),
    ],
)
def test_the_first_place_that_names_an_api_wins(
    argument: str | None, env: dict[str, str], expected: str
) -> None:
    assert find_api_url(argument, IN_SSM, env) == expected


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (ClientError({"Error": {"Code": "ParameterNotFound"}}, "GetParameter"), "ParameterNotFound"),
        (ClientError({"Error": {"Code": "AccessDeniedException"}}, "GetParameter"), "AccessDeniedException"),
        (NoCredentialsError(), "Unable to locate credentials"),
    ],
)
def test_when_none_does_all_three_are_named_with_what_the_last_one_said(answer: Exception, why: str) -> None:
    with pytest.raises(ApiNotConfiguredError) as caught:
        find_api_url(None, FakeSession(answer), {})
    for part in ("api_url=", "TRAINMASTER_API_URL", "/trainmaster/api-url", why):
        assert part in str(caught.value)
