"""Patterns of tag values: like Python's where both take them, and in bounded time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.core.policy.patterns import BadPatternError, parse_pattern


@pytest.mark.parametrize(
    ("pattern", "texts", "others"),
    [
        ("abc", ["abc"], ["ab", "abcd", ""]),
        ("^v[0-9]+(\\.[0-9]+){0,2}$", ["v1", "v1.20", "v1.2.3"], ["v", "v1.2.3.4", "1", "v1."]),
        ("(pre|fine)-?tune?", ["pre-tune", "finetun"], ["pretune?", "tune"]),
        ("[a-z0-9]+(-[a-z0-9]+)*", ["a", "a-b-9"], ["-a", "a-", "A"]),
        ("\\d{4}", ["2026"], ["226", "20266", "abcd"]),
        ("(?:a|b){2,}", ["ab", "bbb"], ["a", "abc"]),
        (".*\\$", ["$", "a$"], ["a", "$a"]),
        ("[^/]+/[^/]+", ["a/b"], ["a", "a/b/c"]),
        ("a|", ["a", ""], ["b"]),
        ("\\\\$", ["\\"], ["\\$", "$"]),
    ],
)
def test_whole_texts_match(pattern: str, texts: list[str], others: list[str]) -> None:
    parsed = parse_pattern(pattern)
    assert [text for text in [*texts, *others] if parsed.matches(text)] == texts


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", ")", "a)", "(a", "*", "a**", "a{2,1}", "a{999}", "[a-", "[z-a]", "[]", "{", "a{,3}"),
        *("(?=a)", "(?P<x>a)", "(?i)a", "\\1", "\\b", "\\Z", "a$b", "a^", "[[a]", "[a--b]"),
        *("(" * 5 + "a" + ")" * 5, "a" * 257),
    ],
)
def test_what_is_not_supported_is_refused(pattern: str) -> None:
    with pytest.raises(BadPatternError):
        parse_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        pytest.param("(a+)+b", "a" * 256, id="nested repeats"),
        pytest.param("(a|a)*b", "a" * 256, id="the same branch twice"),
        pytest.param("a?" * 60 + "a" * 60, "a" * 59, id="sixty that may be left out"),
        pytest.param("((a*)*)*b", "a" * 256, id="three deep"),
        pytest.param("(.*,){20}x", "," * 256, id="many that overlap"),
    ],
)
def test_patterns_that_python_would_take_for_ever_over_are_done_at_once(pattern: str, text: str) -> None:
    assert not parse_pattern(pattern).matches(text)


def test_texts_that_no_tag_can_have_match_nothing() -> None:
    assert parse_pattern("a*").matches("a" * 256)
    assert not parse_pattern("a*").matches("a" * 257)


ATOMS = st.sampled_from(["a", "b", ".", "[ab]", "[^a]", "\\w", "\\d"])
TIMES = st.sampled_from(["", "?", "*", "+", "{2}", "{1,2}", "{0,1}"])
PATTERNS = st.recursive(
    st.builds("{}{}".format, ATOMS, TIMES),
    lambda inner: (
        st.builds("{}{}".format, inner, inner)
        | st.builds("({}|{})".format, inner, inner)
        | st.builds("({}){}".format, inner, TIMES)
    ),
    max_leaves=5,
)


@given(pattern=PATTERNS, text=st.text(alphabet="ab1", max_size=6))
def test_the_answer_is_that_of_pythons_own_engine(pattern: str, text: str) -> None:
    try:
        parsed = parse_pattern(pattern)
    except BadPatternError:
        assert pattern.count("(") > 4
        return
    assert parsed.matches(text) == (re.fullmatch(pattern, text) is not None)
