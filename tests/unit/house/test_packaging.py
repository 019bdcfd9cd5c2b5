"""pyproject.toml beside the locks that everything here is tested with."""

import tomllib
from itertools import chain

from packaging.requirements import Requirement

from tests.markdown import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
ASKED = [
    Requirement(text) for text in chain(PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
]
"""Everything that a user may get."""


def locked(file: str) -> dict[str, str]:
    words = (ROOT / file).read_text(encoding="utf-8").split()
    return dict(word.split("==") for word in words if "==" in word)


def test_users_get_versions_that_are_tested_here() -> None:
    elsewhere = locked("requirements-v3.lock") | locked("requirements-airflow.lock")
    versions = elsewhere | locked("requirements.lock")
    wrong = [str(one) for one in ASKED if not one.specifier.contains(versions[one.name])]
    assert wrong == []


def test_what_the_twin_leans_on_closely_is_pinned_for_users_too() -> None:
    pinned = {one.name for one in ASKED if "==" in str(one.specifier)}
    assert pinned == {"aws-lambda-powertools", "aws-sam-translator", "awslambdaric", "moto"}


def test_who_only_submits_installs_little() -> None:
    assert [Requirement(text).name for text in PROJECT["dependencies"]] == [
        "boto3",
        "pyyaml",
        "rich",
        "typer",
        "tzdata",
    ]


def test_the_wheel_is_built_by_the_same_version_everywhere() -> None:
    (builder,) = PYPROJECT["build-system"]["requires"]
    assert builder == f"hatchling=={locked('requirements.lock')['hatchling']}"
