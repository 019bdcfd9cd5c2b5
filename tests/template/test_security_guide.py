"""The guide's table of rights says what the template grants, action by action."""

import pytest

from tests.markdown import codes, table, text_of
from tests.template.rights import RIGHTS, TABLE

TECHNICAL = frozenset({"kms:Decrypt", "kms:GenerateDataKey", "logs:CreateLogStream", "logs:PutLogEvents"})
"""Own log group and the stack's key; the guide says that they are left out."""
ROLES = {
    "api": "ApiFunctionRole",
    "on_training_job_event": "OnTrainingJobEventFunctionRole",
    "on_idle_alarm": "OnIdleAlarmFunctionRole",
    "reconcile": "ReconcileFunctionRole",
    "queue_widget": "QueueWidgetFunctionRole",
    "schedule": "ScheduleFunctionRole",
}
ROWS = {
    codes(row[0])[0]: row[1] for row in table(text_of("docs/guides/security.md"), "function", "may", "why")
}


def test_every_function_has_a_row() -> None:
    assert ROWS.keys() == ROLES.keys()


def told(action: str, resource: str) -> bool:
    """All but what is technical, on the stack's own key and logs."""
    return action not in TECHNICAL or not resource.startswith("${")


@pytest.mark.parametrize("function", ROLES)
def test_a_row_names_the_actions_that_the_role_has_and_no_other(function: str) -> None:
    said = {code for code in codes(ROWS[function]) if ":" in code}
    if "the same" in ROWS[function]:
        said |= {action for action, _, _ in TABLE}
        said |= set() if "the same on the table" in ROWS[function] else {"sqs:SendMessage"}
    assert said == {action for action, resource, _ in RIGHTS[ROLES[function]] if told(action, resource)}
