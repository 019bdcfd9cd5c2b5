"""The text of a policy becomes its document in the dashboard's process, where changes are allowed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.client.gateway_world import GatewayWorld, running_gateway
from tests.integration.client.test_gateway_pages import Page, asked, opened


@pytest.fixture(scope="module")
def changing() -> Iterator[GatewayWorld]:
    with running_gateway(are_changes_allowed=True) as world:
        yield world


def sent(world: GatewayWorld, body: Any) -> Page:
    session = opened(world).session
    text = json.dumps(body)
    return asked(world, "/ui/data/policy-document", "POST", text, trainmaster_session=session)


def test_yaml_becomes_the_document_that_it_means(changing: GatewayWorld) -> None:
    answer = sent(
        changing, {"text": "# of the lab\npools:\n  - name: p5\n    capacity: {ml.p5.48xlarge: 2}\n"}
    )
    assert answer.status == 200
    assert json.loads(answer.body) == {
        "policy": {"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}]}
    }


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "pools: [\n"}, "The text, line 2: "),
        ({"text": "pools: []\npools: []\n"}, "The text, line 2: the key 'pools' is written twice."),
        ({"text": "just words"}, "The text holds no policy document."),
        ({"text": 5}, 'Send the text of a policy as {"text": "..."}.'),
        ([], 'Send the text of a policy as {"text": "..."}.'),
    ],
)
def test_a_mistake_is_said_with_its_line(body: Any, said: str, changing: GatewayWorld) -> None:
    answer = sent(changing, body)
    assert answer.status == 400
    assert json.loads(answer.body)["detail"].startswith(said)


def test_without_the_session_nothing_is_read(changing: GatewayWorld) -> None:
    assert asked(changing, "/ui/data/policy-document", "POST", '{"text": "a: 1"}').status == 403


def test_T5_a_text_whose_aliases_expand_is_refused_here_too(changing: GatewayWorld) -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]
    answer = sent(changing, {"text": "\n".join(lines)})
    assert (answer.status, "aliases (*name)" in json.loads(answer.body)["detail"]) == (400, True)
