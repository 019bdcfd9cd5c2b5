"""Which code of SageMaker's stands for which error of ours."""

import pytest
from trainmaster_client.errors import (
    ApiUnreachableError,
    CredentialsError,
    InvalidArgumentError,
    MalformedViewError,
    NotFoundError,
    Problem,
    TrainmasterClientError,
    UnexpectedAnswerError,
)
from trainmaster_client.hooks.botocore_events import answered, refusal

NOT_FOUND = NotFoundError(Problem(status=404, title="Not found", detail="no such route"))


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        pytest.param(
            CredentialsError("none."), "UnrecognizedClientException", 403, id="nothing to sign with"
        ),
        pytest.param(NOT_FOUND, "ResourceNotFound", 404, id="another API"),
        pytest.param(ApiUnreachableError("u", why="off."), "ServiceUnavailable", 503, id="no answer"),
        pytest.param(UnexpectedAnswerError("u", what="HTML"), "InternalFailure", 500, id="a proxy answers"),
        pytest.param(MalformedViewError("KeyError"), "InternalFailure", 500, id="another version"),
        pytest.param(InvalidArgumentError("a/b", hint="x"), "ValidationException", 400, id="refused here"),
    ],
)
def test_each_error_has_its_code_and_keeps_its_message(
    error: TrainmasterClientError, code: str, status: int
) -> None:
    http, parsed = refusal(error)
    assert (http.status_code, parsed["ResponseMetadata"]["HTTPStatusCode"]) == (status, status)
    assert parsed["Error"] == {"Code": code, "Message": str(error)}


def test_an_answer_looks_as_if_the_service_had_said_so() -> None:
    http, parsed = answered({"TrainingJobArn": "arn:x"})
    assert (http.status_code, parsed["TrainingJobArn"]) == (200, "arn:x")
    assert parsed["ResponseMetadata"]["HTTPStatusCode"] == 200
