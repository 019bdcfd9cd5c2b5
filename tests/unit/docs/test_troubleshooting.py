"""The guide to troubles says what errors and doctor say."""

import html

from trainmaster_client import errors
from trainmaster_client.cli.exit_codes import exit_code
from trainmaster_client.doctor.checks import STEPS
from trainmaster_client.errors.remedies import ADVICE

from tests.markdown import codes, table, text_of

GUIDE = text_of("docs/troubleshooting.md")


def test_every_trouble_has_its_row_in_the_order_in_which_doctor_looks() -> None:
    rows = table(GUIDE, "word", "what you see", "what is wrong", "what to do")
    shown = [(codes(word)[0], html.unescape(wrong), html.unescape(do)) for word, _, wrong, do in rows]
    assert shown == [(str(trouble), advice.cause, advice.remedy) for trouble, advice in ADVICE.items()]
    assert all(sees for _, sees, _, _ in rows)


def test_every_kind_of_refusal_has_its_row_with_the_exit_code_of_the_command() -> None:
    rows = table(GUIDE, "error", "status", "exit code", "means")
    shown = {codes(row[0])[0]: int(row[2]) for row in rows}
    kinds = {kind.__name__ for kind in errors.RefusedError.__subclasses__()}
    assert set(shown) == kinds
    problem = errors.Problem(status=400, title="t", detail="d")
    assert shown == {name: exit_code(getattr(errors, name)(problem)) for name in kinds}


def test_doctor_needs_only_what_was_looked_at_before() -> None:
    before: set[str] = set()
    for step in STEPS:
        assert before.issuperset(step.needs), step.id
        before.add(step.id)
