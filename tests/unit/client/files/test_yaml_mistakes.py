"""What is said of YAML that the parser gives up on: the line that its author has to change."""

import pytest
import yaml
from trainmaster_client.files.yaml_documents import read_yaml
from trainmaster_client.files.yaml_mistakes import yaml_mistake

POOL = "pools:\n  - name: g5\n    capacity: {ml.g5.xlarge: 2}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{POOL}\tquotas: {{}}\n", "p.yaml: line 4 begins with a tab: use spaces."),
        (f"{POOL}  \tquotas: {{}}\n", "p.yaml: line 4 begins with a tab: use spaces."),
        (
            f"{POOL}quotas: {{a: 1}}\n    preemption: {{}}\n",
            "p.yaml, line 4: quotas is not indented: indent it like capacity.",
        ),
        (
            f"{POOL}quotas:\n  a: 1\n  - name: p4\n",
            "p.yaml, line 4: quotas is not indented: indent it like capacity.",
        ),
        (
            "pools:\n- name: g5\ncapacity: {a: 1}\n  quotas: {}\n",
            "p.yaml, line 3: capacity is not indented: indent it like name.",
        ),
        (
            "pools:\n  - name: g5\n     capacity: {a: 1}\n",
            "p.yaml, line 3: capacity is indented deeper than name, which has a value: indent both alike.",
        ),
        (
            "pools:\n  - name: g5\n   capacity: {a: 1}\n",
            "p.yaml, line 3: capacity is indented like no line before it: indent it like its neighbours.",
        ),
    ],
)
def test_C16_tabs_and_indentation_are_named_by_the_line_to_change(text: str, said: str) -> None:
    assert _mistake(text) == said


@pytest.mark.parametrize(
    "text", ["a: {\n  b: 1\n  c: 2\n}\n", 'a: "x\nb: 1\n', "a: x: y\n", "a: [1,\n", "a: @x\n", "- a\nb: 1\n"]
)
def test_C16_what_is_not_indentation_is_said_in_the_words_of_the_parser(text: str) -> None:
    said = _mistake(text)
    assert said.startswith("p.yaml, line ")
    assert "indent" not in said


def _mistake(text: str) -> str:
    with pytest.raises(yaml.YAMLError) as caught:
        read_yaml(text)
    return yaml_mistake(caught.value, text=text, source="p.yaml")
