"""The schema, the guide's tables and the example's comments are those that follow from the declared keys."""

from pathlib import Path

import generate_policy_reference as reference
import pytest
import yaml
from trainmaster.core.policy import Policy, PoolPolicy, TeamPolicy
from trainmaster.core.policy.keys import Keys, Section, keys_of

FILES = reference.files()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_generated_file_is_up_to_date(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == FILES[path], "run make reference"


def keys(section: type[Section]) -> list[tuple[str, str]]:
    """The name and description of every key there is."""
    below = [key.kind.section for key in keys_of(section).values() if isinstance(key.kind, Keys)]
    own = [(f"{section.__name__}.{name}", key.says) for name, key in keys_of(section).items()]
    return [*own, *(found for inner in below for found in keys(inner))]


DECLARED = {name: says for section in (Policy, PoolPolicy, TeamPolicy) for name, says in keys(section)}


@pytest.mark.parametrize("name", DECLARED)
def test_a_key_is_described_in_sentences(name: str) -> None:
    says = DECLARED[name]
    assert says.endswith((".", ".`"))
    assert "\n" not in says
    assert says.count("`") % 2 == 0


def test_the_example_says_the_same_with_its_comments_and_without() -> None:
    text = reference.EXAMPLE.read_text(encoding="utf-8")
    bare = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    assert yaml.safe_load(text) == yaml.safe_load(bare)
    assert text.count("# Most instances of a job") == 1
