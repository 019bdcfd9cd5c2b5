"""Lines and names beside the paths of a policy's mistakes."""

import pytest
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.policies.policy_document import parse_policy
from trainmaster_client.policies.policy_places import PolicyPlaces

TEXT = b"""# comment
pools:
  - name: g5
    capacity: {ml.g5.xlarge: 2}
  - capacity:
      ml.p4d.24xlarge: 1
    name: p4
    "odd key": 1
teams:
  - {name: vision}
"""


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("pools[0].capacity.ml.g5.xlarge", "pools[0].capacity.ml.g5.xlarge (g5, line 4)"),
        ("pools[1].capacity.ml.p4d.24xlarge", "pools[1].capacity.ml.p4d.24xlarge (p4, line 6)"),
        ("pools[1].quotas.x", "pools[1].quotas.x (p4, line 5)"),
        ('pools[1]["odd key"]', 'pools[1]["odd key"] (p4, line 8)'),
        ("teams[0].roles", "teams[0].roles (vision, line 10)"),
        ("pools[7].name", "pools[7].name (line 2)"),
        ("rules.remote_debug", "rules.remote_debug"),
        ("", ""),
    ],
)
def test_C16_a_path_gets_the_name_and_the_line(field: str, shown: str) -> None:
    assert PolicyPlaces(TEXT, parse_policy(TEXT, source="p.yaml")).of(field) == shown


def test_C16_among_forty_pools_nobody_counts() -> None:
    text = "pools:\n" + "".join(
        f"  - name: p{number}\n    capacity: {{ml.g5.xlarge: 1}}\n" for number in range(40)
    )
    places = PolicyPlaces(text.encode(), parse_policy(text.encode(), source="p.yaml"))
    assert places.of("pools[17].capcity") == "pools[17].capcity (p17, line 36)"


def test_C16_json_with_tabs_has_lines_too() -> None:
    text = b'{\n\t"pools": [\n\t\t{"name": "g5"}]}'
    assert (
        PolicyPlaces(text, parse_policy(text, source="p.json")).of("pools[0].x") == "pools[0].x (g5, line 3)"
    )


@pytest.mark.parametrize(
    ("value", "meant"),
    [("1,000", "1000"), ("1,000,000", "1000000"), ("12,500.50", "12500.50"), ("-1,000", "-1000")],
)
def test_C16_a_comma_in_a_number_is_named(value: str, meant: str) -> None:
    for text in (f"budget: {{usd: {value}, at: wait}}", f"budget: {{at: wait, usd: {value}}}"):
        with pytest.raises(InvalidArgumentError, match=f"p.yaml, line 1: write {meant} without a comma"):
            parse_policy(text.encode(), source="p.yaml")


def test_C16_keys_that_are_numbers_are_left_alone() -> None:
    text = b"{a: 1, 100: x, b: {200, 300}, c: 1, d: 100}"
    assert parse_policy(text, source="p.yaml")["c"] == 1
