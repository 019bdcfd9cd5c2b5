"""How a section is declared, and what follows from the declaration."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from trainmaster.core.policy.findings import Location
from trainmaster.core.policy.keys import Keys, Section, inline, key, key_or_off, needed, optional
from trainmaster.core.policy.kinds import Duration, Flag, Whole, list_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Inner(Section):
    is_on: bool = key(Flag(), True, "Whether it is on.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer(Section):
    number: int = needed(Whole(), "A number.", stand_in=-1, hint="write one")
    for_: timedelta = key(Duration(), "90s", "For so long.")
    each: tuple[int, ...] = key(list_of(Whole(), "write a list"), [], "Numbers.")
    extra: Inner | None = optional(Keys(Inner), "More.")
    rate: Inner | None = key_or_off(Keys(Inner), {}, "It may be off.")
    inner: Inner = inline(Inner)

    def check(self, at: Location) -> None:
        if self.number == 13:
            at.below("number").refuse("brings bad luck", "write 12")


def read(document: object) -> tuple[Outer, list[tuple[str, str]]]:
    at = Location()
    outer = Keys(Outer).read(document, at)
    return outer, [(error.field, error.message) for error in at.findings.errors]


def test_what_is_not_written_has_its_default() -> None:
    expected = Outer(
        number=1, for_=timedelta(seconds=90), each=(), extra=None, rate=Inner(is_on=True), inner=Inner()
    )
    assert read({"number": 1}) == (expected, [])
    assert Outer(number=1) == expected


def test_null_is_not_written_but_where_it_means_off() -> None:
    outer, errors = read({"number": 1, "for": None, "extra": None, "is_on": None, "rate": None})
    assert (outer, errors) == (Outer(number=1, rate=None), [])


def test_a_trailing_underscore_is_python_s_and_an_inline_section_has_its_keys_here() -> None:
    outer, errors = read({"number": 1, "for": "1m", "is_on": False})
    assert (outer.for_, outer.inner, errors) == (timedelta(minutes=1), Inner(is_on=False), [])


def test_what_is_missing_or_refused_does_not_hide_other_mistakes() -> None:
    outer, errors = read({"for": 90, "each": [1, "2"], "is_of": True})
    assert [path for path, _ in errors] == ["number", "for", "each[1]", "is_of"]
    assert (outer.number, outer.for_) == (-1, timedelta(seconds=90))


def test_what_several_keys_show_is_checked_last() -> None:
    assert read({"number": 13, "zzz": 1})[1] == [("zzz", "unknown key"), ("number", "brings bad luck")]


def test_a_default_that_its_own_kind_refuses_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        key(Whole(most=5), 6, "Too many.")
