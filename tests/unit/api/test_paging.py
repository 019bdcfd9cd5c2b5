"""Tokens for the next page tell nothing and fit nobody else's call."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster.api.paging import Mark, Seal
from trainmaster.core.errors import InvalidRequestError

SEAL = Seal(key=b"k" * 32, bound="vision")
MARK = Mark(section="waiting:p5", order=(-12, "secret-job"), counted=3)


@given(
    st.text(min_size=1, max_size=20),
    st.integers(-(10**16), 10**16),
    st.from_regex(r"[a-z0-9-]{1,63}", fullmatch=True),
)
def test_a_token_brings_its_mark_back(section: str, position: int, name: str) -> None:
    mark = Mark(section=section, order=(position, name), counted=7)
    assert SEAL.mark(SEAL.token(mark)) == mark


def test_a_token_does_not_tell_the_name_it_holds() -> None:
    assert b"secret" not in base64.urlsafe_b64decode(SEAL.token(MARK))


def test_tokens_of_neighbours_have_nothing_in_common() -> None:
    one = base64.urlsafe_b64decode(SEAL.token(MARK))
    other = base64.urlsafe_b64decode(
        SEAL.token(Mark(section="waiting:p5", order=(-12, "secret-joc"), counted=3))
    )
    equal = sum(left == right for left, right in zip(one, other, strict=True))
    assert equal < len(one) / 4


@pytest.mark.parametrize(
    "seal",
    [Seal(key=b"k" * 32, bound="speech"), Seal(key=b"x" * 32, bound="vision")],
    ids=["caller", "table"],
)
def test_G7_a_token_of_another_caller_or_table_is_refused(seal: Seal) -> None:
    with pytest.raises(InvalidRequestError):
        seal.mark(SEAL.token(MARK))


@pytest.mark.parametrize(
    "token", ["", "x", "!!!!", "AAAA", "A" * 5000, "é", "a b", base64.urlsafe_b64encode(b"{}" * 20).decode()]
)
def test_G7_a_malformed_token_is_refused(token: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        SEAL.mark(token)
    assert caught.value.errors[0].field == "query.next_token"


def test_every_changed_character_is_noticed() -> None:
    token = SEAL.token(MARK).rstrip("=")
    padding = SEAL.token(MARK)[len(token) :]
    for position in range(len(token) - 1):  # the last one may hold unused bits
        changed = "B" if token[position] == "A" else "A"
        with pytest.raises(InvalidRequestError):
            SEAL.mark(token[:position] + changed + token[position + 1 :] + padding)
