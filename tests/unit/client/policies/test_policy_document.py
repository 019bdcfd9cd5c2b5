"""A policy file as YAML or JSON, and the mistakes only the file shows."""

import pytest
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.policies.policy_document import parse_policy


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"version: 1\npools:\n  - {name: p5, capacity: {ml.p5.48xlarge: 2}}\n", id="yaml"),
        pytest.param(
            b'{"version": 1, "pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}]}', id="json"
        ),
        pytest.param(
            b'{\n\t"version": 1,\n\t"pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}]\n}',
            id="json indented with tabs",
        ),
    ],
)
def test_yaml_and_json_give_the_same_document(text: bytes) -> None:
    expected = {"version": 1, "pools": [{"name": "p5", "capacity": {"ml.p5.48xlarge": 2}}]}
    assert parse_policy(text, source="p.yaml") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            b"a: 1\npools: []\npools: []\n", "p.yaml, line 3: the key 'pools' is written twice", id="twice"
        ),
        pytest.param(b"pools: [", "p.yaml, line ", id="not closed"),
        pytest.param(b"- 1\n", "holds no policy document", id="a list"),
        pytest.param(b"", "holds no policy document", id="empty"),
        pytest.param(b"since: 2026-01-01\n", "not JSON serializable", id="a date"),
        pytest.param(b"limit: .nan\n", "not JSON compliant", id="not a number"),
        pytest.param(b"a: \xff\xfe\n", "p.yaml", id="not text"),
        pytest.param(
            b"a: !!python/object:os.system x\n", "could not determine a constructor", id="a Python tag"
        ),
        pytest.param(b"? [a, b]\n: 1\n", "unhashable key", id="a list as key"),
        pytest.param(b"[" * 5000, "nested more than 64 levels deep", id="very deep"),
        pytest.param(b"a: &x [*x]\n", "or stands within it", id="holding itself"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_place(text: bytes, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parse_policy(text, source="p.yaml")
    assert message in str(caught.value)
    assert "Nothing was changed." in str(caught.value)
