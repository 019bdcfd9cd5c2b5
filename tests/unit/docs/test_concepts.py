"""The page of concepts draws steps that jobs take, names every state, and explains the words that it uses."""

import re

import pytest
from trainmaster.core.jobs.states import FINAL, LIVE, TRANSITIONS, JobState

from tests.markdown import blocks, codes, table, text_of

PAGE = text_of("docs/concepts.md")
PICTURE, LIFE = (block.text for block in blocks(PAGE, "mermaid"))
WORDS = [word.strip() for row in table(PAGE, "word", "means") for word in row[0].split(",")]


def test_the_life_of_a_job_is_drawn_with_steps_that_there_are() -> None:
    drawn = set(re.findall(r"(\S+) --> (\w+|\[\*\])", LIFE))
    steps = {(str(state), str(after)) for state, afters in TRANSITIONS.items() for after in afters}
    assert drawn - steps == {("[*]", "pending")} | {(str(state), "[*]") for state in FINAL}
    assert {state for step in drawn for state in step} == {"[*]", *map(str, JobState)}


def test_every_state_is_explained() -> None:
    rows = table(PAGE, "state", "means", "holds instances")
    holds = {state: row[2] == "yes" for row in rows for state in codes(row[0])}
    assert holds == {str(state): state in LIVE for state in JobState}


def test_the_picture_is_a_round_from_the_table_and_back() -> None:
    arrows = re.findall(r"^ +(\w+)\S*.*? -->(?:\|[^|]+\|)? (\w+)", PICTURE, re.MULTILINE)
    assert {("table", "plan"), ("plan", "execute"), ("execute", "sagemaker"), ("sagemaker", "table")} <= set(
        arrows
    )


def test_the_glossary_is_sorted_and_has_every_word_once() -> None:
    firsts = [row[0].lower() for row in table(PAGE, "word", "means")]
    assert firsts == sorted(firsts)
    assert len(set(WORDS)) == len(WORDS)


@pytest.mark.parametrize("word", sorted(set(re.findall(r"\*\*([a-z][a-z -]+)\*\*", PAGE))))
def test_a_word_that_the_page_introduces_is_in_the_glossary(word: str) -> None:
    forms = {word, word.removesuffix("s"), word.removesuffix("ed"), word.removesuffix("ion")}
    forms |= {word.removesuffix("d"), "preempt" if word == "preempt" else word}
    assert forms & set(WORDS), f"{word} is introduced in bold and missing in the glossary"
