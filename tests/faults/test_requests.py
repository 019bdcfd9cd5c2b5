"""Group E of the fault list: bodies."""

import json
from typing import Any

import pytest
from trainmaster.core.errors import PayloadTooLargeError
from trainmaster.core.request.strict_json import MAX_BODY_BYTES, canonical
from trainmaster.core.request.validation import require_valid

from tests.bodies import body, fields, resources, sent, tags
from tests.faults.submitting import refusal, refused_fields, submit


def test_the_body_that_all_others_here_vary_is_accepted() -> None:
    assert submit(json.dumps(body())).name == "p5"


@pytest.mark.parametrize("text", [None, "", "no JSON", "[]", '"text"', "null", "5", "true"])
def test_E1_what_is_no_json_object_is_a_400_on_the_body(text: str | None) -> None:
    assert refused_fields(text) == ["body"]


@pytest.mark.parametrize("content_type", [None, "", "text/plain", "application/xml"])
def test_E1_another_content_type_is_a_400_on_the_header(content_type: str | None) -> None:
    error = refusal(body(), content_type=content_type)
    assert (error.status, fields(error.errors)) == (400, ["Content-Type"])


def test_E1_a_body_marked_as_binary_is_a_400() -> None:
    assert refusal("e30=", base64=True).status == 400


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_E2_a_number_that_is_not_finite_is_a_400_on_its_field(number: str) -> None:
    text = json.dumps(body(zzz=0)).replace(
        '"zzz": 0', f'"RetryStrategy": {{"MaximumRetryAttempts": {number}}}'
    )
    assert refused_fields(text) == ["RetryStrategy.MaximumRetryAttempts"]


def test_E3_a_key_given_twice_is_a_400_on_it() -> None:
    text = json.dumps(body()).replace('"InstanceCount": 1', '"InstanceCount": 1, "InstanceCount": 2')
    assert refused_fields(text) == ["ResourceConfig.InstanceCount"]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '{"a":' + "[" * 100_000])
def test_E4_100_000_levels_are_a_400(text: str) -> None:
    assert refused_fields(text if len(text) <= MAX_BODY_BYTES else text[:MAX_BODY_BYTES]) == ["body"]


def test_E4_an_integer_of_5_000_digits_is_a_400_on_its_field() -> None:
    text = json.dumps(body()).replace('"InstanceCount": 1', f'"InstanceCount": {"9" * 5000}')
    assert refused_fields(text) == ["ResourceConfig.InstanceCount"]


@pytest.mark.parametrize("size", [400_000, 1_000_000, 6_000_000])
def test_E5_a_body_over_the_limit_is_a_413(size: int) -> None:
    error = refusal(body(Environment={"A": "x" * size}))
    assert isinstance(error, PayloadTooLargeError)
    assert error.status == 413


@pytest.mark.parametrize("letter", ["x", "\u00e4", "\u4e2d", "\U0001f600"])
def test_E5_what_is_stored_of_an_accepted_body_is_no_larger_than_the_limit(letter: str) -> None:
    size = len(letter.encode())
    filling = {f"k{number}": letter * (2500 // size) for number in range(100)}
    text = json.dumps(body(HyperParameters=filling), ensure_ascii=False)
    assert submit(text).name == "p5"
    assert len(canonical(json.loads(text))) <= len(text.encode()) <= MAX_BODY_BYTES


def test_E6_an_unknown_field_is_a_400_that_names_it_and_what_was_meant() -> None:
    error = refusal(body(Resourceconfig=body()["ResourceConfig"], ResourceConfig=None))
    assert error.status == 400
    (typo,) = (one for one in error.errors if one.field == "Resourceconfig")
    assert "ResourceConfig" in typo.hint


@pytest.mark.parametrize("odd", ["\u202ejob", "job\u0000", "jo\ud800b", "job\U0001f600", "j\u00f6b"])
def test_E7_odd_characters_in_a_name_are_a_400(odd: str) -> None:
    assert refused_fields(body(TrainingJobName=odd)) == ["TrainingJobName"]


@pytest.mark.parametrize("odd", ["\u0000", "\u0007", "\u009b", "a\ud800", "\udc00"])
def test_E7_control_characters_and_half_characters_anywhere_are_a_400_on_the_field(odd: str) -> None:
    assert refused_fields(body(HyperParameters={"a": odd})) == ["HyperParameters.a"]
    assert refused_fields(body(Environment={"a": odd})) == ["Environment.a"]
    assert refused_fields(body(Tags=tags(a=odd))) == ["Tags[0].Value"]


@pytest.mark.parametrize("odd", ["\u202etxet", "\U0001f600", "\u200b", "e\u0301"])
def test_E7_other_free_text_is_kept_as_it_is(odd: str) -> None:
    whole = sent(body(HyperParameters={"a": odd}, Environment={"a": odd}))
    require_valid(whole)
    kept = json.loads(canonical(whole))
    assert (kept["HyperParameters"], kept["Environment"]) == ({"a": odd}, {"a": odd})


@pytest.mark.parametrize("value", [1, 0.1, True, None, [], {}])
def test_E8_a_hyperparameter_that_is_no_string_is_a_400_on_it(value: object) -> None:
    assert refused_fields(body(HyperParameters={"lr": value})) == ["HyperParameters.lr"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"HyperParameters": {str(number): "" for number in range(101)}}, "HyperParameters"),
        ({"HyperParameters": {"k" * 257: ""}}, "HyperParameters[" + json.dumps("k" * 64 + "...") + "]"),
        ({"HyperParameters": {"k": "v" * 2501}}, "HyperParameters.k"),
        ({"Environment": {"A-B": ""}}, "Environment.A-B"),
        ({"Environment": {"A": "v" * 513}}, "Environment.A"),
    ],
)
def test_E9_too_many_or_too_long_is_a_400_on_the_field(change: dict[str, Any], field: str) -> None:
    assert refused_fields(body(**change)) == [field]


def test_E9_the_longest_that_the_service_model_allows_is_accepted() -> None:
    most = {f"{number:0256}": "v" * 2400 for number in range(90)} | {"k": "v" * 2500}
    assert submit(json.dumps(body(HyperParameters=most, Environment={"A": "v" * 512}))).name == "p5"


def test_E10_deep_nesting_inside_a_field_is_a_400_on_it() -> None:
    deep = '{"a":' * 200 + "1" + "}" * 200
    text = json.dumps(body(zzz=0)).replace('"zzz": 0', f'"ExperimentConfig": {deep}')
    (field,) = refused_fields(text)
    assert field.startswith("ExperimentConfig.a.a")


@pytest.mark.parametrize("value", [True, False, "1", 1.5])
def test_E11_a_count_that_is_no_integer_is_a_400_on_it(value: object) -> None:
    whole = resources(InstanceType="ml.p5.48xlarge", InstanceCount=value)
    assert refused_fields(whole) == ["ResourceConfig.InstanceCount"]


@pytest.mark.parametrize("behind", ["{}", "x", "\x00", "\r\n0\r\n\r\n"])
def test_E12_data_behind_the_json_is_a_400(behind: str) -> None:
    assert refused_fields(json.dumps(body()) + behind) == ["body"]


def test_E12_compressed_or_chunked_data_is_a_400() -> None:
    assert refused_fields("\x1f\ufffd\x08\x00" + "\ufffd" * 50) == ["body"]
    assert refused_fields("1a\r\n" + json.dumps(body())) == ["body"]
