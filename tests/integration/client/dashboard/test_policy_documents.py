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
    cookie = opened(world).cookie
    text = json.dumps(body)
    return asked(world, "/ui/data/policy-document", "POST", text, cookie=cookie, trainmaster_change="1")


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


def test_without_the_pages_header_nothing_is_read(changing: GatewayWorld) -> None:
    cookie = opened(changing).cookie
    assert (
        asked(changing, "/ui/data/policy-document", "POST", '{"text": "a: 1"}', cookie=cookie).status == 403
    )
