"""A body on its way into the queue, as far as the API looks at it before it stores anything."""

import json
from typing import Any

import pytest
from trainmaster.core.errors import InvalidRequestError, TrainmasterError
from trainmaster.core.policy import PoolPolicy, parse_policy
from trainmaster.core.request.request import read_request
from trainmaster.core.request.strict_json import parse_object
from trainmaster.core.request.validation import require_valid
from trainmaster.core.submission.admission import Submission, judge

from tests.bodies import fields

JSON = "application/json"
POLICY = parse_policy({"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2, "ml.g5.xlarge": 8}}]})


def submit(text: str | None, *, base64: bool = False, content_type: str | None = JSON) -> PoolPolicy:
    """The pool that takes the job."""
    whole = parse_object(text, base64=base64, content_type=content_type)
    require_valid(whole)
    ask = read_request(whole)
    return judge(Submission(body=whole, ask=ask, team="default", submitted_by="me"), POLICY).accepted()


def refusal(whole: object, **how: Any) -> TrainmasterError:
    text = whole if isinstance(whole, str) or whole is None else json.dumps(whole)
    with pytest.raises(TrainmasterError) as caught:
        submit(text, **how)
    assert all(error.message and error.hint for error in caught.value.errors)
    return caught.value


def refused_fields(whole: object) -> list[str]:
    """The fields of a 400."""
    error = refusal(whole)
    assert isinstance(error, InvalidRequestError)
    assert error.status == 400
    return fields(error.errors)
