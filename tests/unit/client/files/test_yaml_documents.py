"""YAML of users: what people write is read, what multiplies itself is refused before it is built."""

import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.files.yaml_documents import (
    DEEPEST,
    LARGEST_BYTES,
    LONGEST_NUMBER,
    StrictLoader,
    read_yaml,
    read_yaml_documents,
)
from trainmaster_client.manifests.crd_schema import read_crd
from trainmaster_client.policies.policy_document import parse_policy

from local.deployment.deployment_errors import TemplateError
from local.deployment.template_yaml import read_template
from local.policy_file import PolicyError, read_policy
from local.world_file import WorldFileError, read_world

MOST_SECONDS = 0.05
MOST_BYTES = 50_000_000


def laughs(levels: int) -> str:
    """Lists of nine aliases, each of the list before: nine times as much with each line."""
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def merges(levels: int) -> str:
    lines = ["a0: &a0 {b: 1}"]
    lines += [f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n  k{n}: 1" for n in range(1, levels)]
    return "\n".join(lines)


BOMBS = {
    "lists of lists": laughs(9),
    "within one line": "[" + "".join(f"&a{n} [*a{n - 1}, *a{n - 1}], " for n in range(1, 40)).replace(
        "*a0, *a0", "x, x"
    ) + "*a39]",
    "merge keys": merges(30),
    "maps of maps": "a0: &a0 {x: y}\n" + "\n".join(
        f"a{n}: &a{n} {{{', '.join(f'k{m}: *a{n - 1}' for m in range(9))}}}" for n in range(1, 9)
    ),
    "a long text many times": f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 1000)}]",
    "an anchor that is given again": "a: &a [x, x]\n" + "\n".join(
        f"b{n}: &a [*a, *a, *a]" for n in range(20)
    ),
    "keys of a map": "a0: &a0 [x, x]\n" + "\n".join(
        f"a{n}: &a{n} {{? *a{n - 1} : *a{n - 1}}}" for n in range(1, 30)
    ),
    "an alias within its own anchor": "a: &a [*a, *a]",
}  # fmt: skip


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_T5_aliases_that_expand_are_refused_at_once_and_with_a_sentence(text: str) -> None:
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(InvalidArgumentError, match=r"policy.yaml, line \d+: .*alias.*\.") as caught:
        parse_policy(text.encode(), source="policy.yaml")
    seconds, peak = time.process_time() - began, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert seconds < MOST_SECONDS
    assert peak < MOST_BYTES
    assert "\n" not in str(caught.value).removesuffix("\n")


def test_T5_every_reader_of_a_users_yaml_has_the_bound(tmp_path: Path) -> None:
    file = tmp_path / "bomb.yaml"
    file.write_text(laughs(9))
    with pytest.raises(PolicyError, match="aliases"):
        read_policy(file)
    with pytest.raises(WorldFileError, match="aliases"):
        read_world(str(file))
    with pytest.raises(TemplateError, match="aliases"):
        read_template(laughs(9))
    with pytest.raises(InvalidArgumentError, match="aliases"):
        read_crd(file)


SHARED = """
team: &team {max_priority: 10, roles: [train]}
teams:
- {<<: *team, name: vision}
- <<: [*team, {members: [ann]}]
  name: language
  max_priority: 20
others: [*team, *team]
"""


def test_anchors_that_people_use_are_what_they_stand_for() -> None:
    found = read_yaml(SHARED)
    assert found["teams"] == [
        {"max_priority": 10, "roles": ["train"], "name": "vision"},
        {"max_priority": 20, "roles": ["train"], "members": ["ann"], "name": "language"},
    ]
    assert found["others"] == [found["team"]] * 2


def test_a_rule_shared_by_many_pools_is_read() -> None:
    rule = "rule: &rule {preemption: {min_runtime: 15m}, warm_pool: {keep_alive: 10m}, limits: {jobs: 5}}"
    found = read_yaml("\n".join([rule, *(f"pool{n}: {{<<: *rule, name: p{n}}}" for n in range(500))]))
    assert len(found) == 501


TOO_MUCH = {
    "deep lists": ("[" * 100_000, f"more than {DEEPEST} levels"),
    "deep maps": ("{a: " * 5000, f"more than {DEEPEST} levels"),
    "deep blocks": ("\n".join(f"{' ' * n}a:" for n in range(900)), f"more than {DEEPEST} levels"),
    "a long text": ("a: " + "x" * LARGEST_BYTES, "at most"),
    "a number of base 60": ("a: " + "1:" * 40_000 + "1.5", "number of"),
    "a whole number": ("a: " + "1" * 5000, f"at most {LONGEST_NUMBER}"),
    "hexadecimal digits": ("a: 0x" + "f" * 5000, f"at most {LONGEST_NUMBER}"),
    "a day that there is not": ("a: 2026-13-45", "month"),
    "a zone that there is not": ("a: 2026-01-01T00:00:00+99:99", "cannot be read"),
    "a whole number that is a word": ("a: !!int x", "cannot be read"),
    "a program": ("a: !!python/object/apply:os.system [ls]", "tag"),
    "a lonely half of a character": ("a: \ud800", "cannot be read"),
    "two documents": ("a: 1\n---\na: 2", "2 documents"),
    "an alias of nothing": ("a: *b", "no anchor"),
    "a list as a key": ("? [a]\n: b", "unhashable"),
    "a key that is there": ("a: {b: 1, b: 2}", "'b' is written twice"),
    "a key in other words": ("true: 1\nyes: 2", "True is written twice"),
}


@pytest.mark.parametrize(("text", "problem"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_T5_what_is_too_much_or_makes_no_sense_is_a_yaml_error(text: str, problem: str) -> None:
    with pytest.raises(yaml.YAMLError, match=problem):
        read_yaml(text)


def test_one_level_less_is_read() -> None:
    assert read_yaml("[" * DEEPEST + "]" * DEEPEST) is not None
    assert read_yaml(f"a: {'1' * LONGEST_NUMBER}") == {"a": int("1" * LONGEST_NUMBER)}


def test_merge_keys_may_stand_twice_and_a_tag_of_a_loader_is_its_own() -> None:
    assert read_yaml("a: &a {b: 1}\nc:\n  <<: *a\n  <<: {d: 2}\n")["c"] == {"b": 1, "d": 2}

    class Doubled(StrictLoader):
        pass

    Doubled.add_constructor("!twice", lambda loader, node: [loader.construct_scalar(node)] * 2)
    assert read_yaml("a: !twice x", loader=Doubled) == {"a": ["x", "x"]}


@pytest.mark.parametrize(
    ("text", "documents"), [("", []), ("a: 1\n---\n- 2\n", [{"a": 1}, [2]]), ("---", [None])]
)
def test_documents_of_a_text(text: str, documents: list[Any]) -> None:
    assert read_yaml_documents(text.encode()) == documents


def test_the_python_parser_has_the_same_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without its C parser."""

    class Slow(yaml.SafeLoader):
        pass

    for text in (laughs(9), "[" * 5000, "a: &a [*a]"):
        with pytest.raises(yaml.MarkedYAMLError):
            read_yaml(text, loader=Slow)
