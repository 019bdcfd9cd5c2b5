import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.errors import InvalidRequestError, PayloadTooLargeError, TrainmasterError
from trainmaster.core.request.strict_json import MAX_BODY_BYTES, MAX_DEPTH, parse_object

from tests.bodies import body, parsed


def nested(depth: int, opening: str = "[", freeze: str = "]") -> str:
    """An object of this depth, itself the first level."""
    inner = depth - 1
    return '{"a":' + opening * inner + freeze * inner + "}"


@pytest.mark.parametrize(
    ("text", "field", "said"),
    [
        pytest.param(None, "body", "empty", id="no body"),
        pytest.param("", "body", "empty", id="an empty body"),
        pytest.param(" \n\t", "body", "empty", id="whitespace alone"),
        pytest.param("{", "body", "not JSON", id="cut off"),
        pytest.param("{'a': 1}", "body", "not JSON", id="single quotes"),
        pytest.param("a=1&b=2", "body", "not JSON", id="a form"),
        pytest.param("\ufeff{}", "body", "not JSON", id="a byte order mark"),
        pytest.param('{"a": "x\ny"}', "body", "not JSON", id="a raw line break in a string"),
        pytest.param("\x1f\ufffd\x08", "body", "not JSON", id="gzip"),
        pytest.param("[]", "body", "a list", id="a list"),
        pytest.param('"{}"', "body", "a string", id="a string"),
        pytest.param("null", "body", "null", id="null"),
        pytest.param("true", "body", "a boolean", id="a boolean"),
        pytest.param("1", "body", "a number", id="a number"),
        pytest.param("1.5", "body", "a number", id="a fraction"),
        pytest.param("NaN", "body", "not a finite number", id="NaN alone"),
        pytest.param('{"p": NaN}', "p", "not a finite number", id="NaN"),
        pytest.param('{"p": [1, -Infinity]}', "p[1]", "not a finite number", id="minus infinity in a list"),
        pytest.param('{"p": {"q": 1e999}}', "p.q", "not a finite number", id="a number beyond a double"),
        pytest.param('{"a": 1, "a": 1}', "a", "more than once", id="a key twice with one value"),
        pytest.param(
            '{"x": [{"a": 1, "b": 2, "a": 3}]}', "x[0].a", "more than once", id="a key twice inside"
        ),
        pytest.param('{"n": ' + "9" * 5000 + "}", "n", "too many digits", id="an integer of 5,000 digits"),
        pytest.param('{"n": ' + "9" * 21 + "}", "n", "too many digits", id="an integer beyond 64 bits"),
        pytest.param("{} {}", "body", "continues", id="a second object behind the first"),
        pytest.param("{}\x00", "body", "continues", id="a NUL behind the object"),
        pytest.param("{}\u00a0", "body", "continues", id="a space that JSON does not know behind it"),
        pytest.param("[" * 100_000, "body", "nested", id="100,000 opening brackets"),
        pytest.param('{"a":' * 50_000, "body", "nested", id="50,000 opening objects"),
        pytest.param(nested(MAX_DEPTH + 1), "a" + "[0]" * 31, "nested", id="one level too deep"),
        pytest.param('{"t": "\\ud800"}', "t", "half a character", id="a lone surrogate"),
        pytest.param('{"t": ["\\udc00x"]}', "t[0]", "half a character", id="a lone low surrogate in a list"),
        pytest.param('{"\\ud800": 1}', '["\\ud800"]', "half a character", id="a lone surrogate in a key"),
    ],
)
def test_what_is_refused_names_the_field_and_what_is_wrong(text: str | None, field: str, said: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parsed(text)
    (error,) = caught.value.errors
    assert error.field == field
    assert said in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("{}", {}, id="an empty object"),
        pytest.param(' \r\n{"a": 1}\t\n', {"a": 1}, id="whitespace around it"),
        pytest.param('{"a": -0.5, "b": 1e3}', {"a": -0.5, "b": 1000.0}, id="fractions"),
        pytest.param('{"n": -9223372036854775808}', {"n": -(2**63)}, id="the least 64-bit integer"),
        pytest.param('{"t": "\\ud83d\\ude00"}', {"t": "\U0001f600"}, id="a pair of surrogates is an emoji"),
        pytest.param(
            '{"t": "\u202e\\u0000"}', {"t": "\u202e\x00"}, id="odd characters are for the fields to judge"
        ),
        pytest.param('{"a": {"a": 1}}', {"a": {"a": 1}}, id="one key at two levels"),
    ],
)
def test_what_is_taken_comes_back_as_it_was(text: str, expected: dict[str, Any]) -> None:
    assert parsed(text) == expected


def test_the_deepest_nesting_allowed_is_taken() -> None:
    assert parsed(nested(MAX_DEPTH))


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
    ],
)
def test_json_in_utf8_is_the_content_type(content_type: str) -> None:
    assert parse_object('{"a": 1}', base64=False, content_type=content_type) == {"a": 1}


@pytest.mark.parametrize(
    "content_type",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin-1",
        "json\r\nx: y",
    ],
)
def test_another_content_type_is_refused_by_name(content_type: str | None) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_object("{}", base64=False, content_type=content_type)
    (error,) = caught.value.errors
    assert error.field == "Content-Type"
    assert "application/json" in error.hint
    assert "\n" not in error.message


def test_a_body_that_the_gateway_took_for_binary_is_refused() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_object("{}", base64=True, content_type="application/json")
    assert caught.value.errors[0].field == "body"


@pytest.mark.parametrize(
    ("filling", "fits"),
    [
        pytest.param("x" * (MAX_BODY_BYTES - 8), True, id="exactly the limit"),
        pytest.param("x" * (MAX_BODY_BYTES - 7), False, id="one byte over"),
        pytest.param("\u00e4" * (MAX_BODY_BYTES // 2), False, id="bytes count, not characters"),
        pytest.param("x" * 6_000_000, False, id="six megabytes"),
    ],
)
def test_the_limit_is_on_the_bytes_of_the_body(filling: str, *, fits: bool) -> None:
    text = json.dumps({"a": filling}, ensure_ascii=False, separators=(",", ":"))
    if fits:
        assert parsed(text) == {"a": filling}
    else:
        with pytest.raises(PayloadTooLargeError) as caught:
            parsed(text)
        assert caught.value.errors[0].field == "body"


def test_every_flaw_is_listed_but_no_more_than_fifty() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parsed('{"a": NaN, "b": 1, "b": 2}')
    assert [error.field for error in caught.value.errors] == ["a", "b"]
    with pytest.raises(InvalidRequestError) as caught:
        parsed('{"a": [' + ",".join(["NaN"] * 1000) + "]}")
    assert len(caught.value.errors) == 50


def test_a_long_key_is_cut_where_it_is_named() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parsed(json.dumps({"k" * 100_000: float("nan")}))
    assert len(caught.value.errors[0].field) < 100


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def read_or_refused(text: str) -> dict[str, Any] | TrainmasterError:
    try:
        return parsed(text)
    except TrainmasterError as error:
        return error


@given(json_values.map(json.dumps) | st.text() | st.text(alphabet='{}[]":,0e9-\\u d8 NaN'))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    outcome = read_or_refused(text)
    if isinstance(outcome, TrainmasterError):
        assert outcome.status in {400, 413}
        assert outcome.errors
    else:
        assert json.loads(text) == outcome
        assert json.dumps(outcome, ensure_ascii=False, allow_nan=False).encode()


@given(st.text(max_size=40), st.integers(min_value=0))
def test_a_good_body_with_something_in_it_changed_is_read_or_refused(noise: str, place: int) -> None:
    text = json.dumps(body())
    place %= len(text)
    outcome = read_or_refused(text[:place] + noise + text[place + len(noise) :])
    assert not isinstance(outcome, TrainmasterError) or outcome.errors
