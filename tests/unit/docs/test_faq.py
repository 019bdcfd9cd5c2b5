"""The questions: each is one, and its answer is short and leads to the page that has the long one."""

import re

import pytest

from tests.markdown import links, text_of

PAGE = text_of("docs/faq.md")
ANSWERS = dict(re.findall(r"^### (.+)\n\n((?:(?!^##).*\n)+)", PAGE, re.MULTILINE))
MOST_WORDS = 90


def test_every_heading_of_the_third_level_is_a_question() -> None:
    assert len(ANSWERS) == len(re.findall(r"^### ", PAGE, re.MULTILINE)) > 20
    assert [question for question in ANSWERS if not question.endswith("?")] == []


@pytest.mark.parametrize("question", ANSWERS)
def test_an_answer_is_short_and_has_a_link(question: str) -> None:
    answer = ANSWERS[question]
    assert links(answer), question
    assert len(re.sub(r"\]\([^)]*\)", "]", answer).split()) <= MOST_WORDS, question


def test_the_figures_are_those_of_the_readme() -> None:
    """README's are held to the pages that measured them."""
    readme, answers = text_of("README.md"), " ".join(PAGE.split())
    (million,) = re.findall(r"(\d+) USD for a million jobs", readme)
    assert f"A million jobs are about {million} USD on top" in answers
    (waste,) = re.findall(r"preemptions waste \*\*(\d+) % less\*\* GPU time", readme)
    assert f"preemptions waste {waste} % less GPU time" in answers
    (delay,) = re.findall(r"weighted by urgency, is \*\*(\d+) % shorter\*\*", readme)
    assert f"the weighted delay is {delay} % shorter" in answers
