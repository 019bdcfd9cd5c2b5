from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from training.preemptible import CheckpointPackageError, CheckpointPlaceError
from training.preemptible.checkpoint import LocalStore, open_store


def test_a_path_is_a_directory() -> None:
    store = open_store("/opt/ml/checkpoints", {}, cache_dir="/cache")
    assert isinstance(store, LocalStore)
    assert store.location == "/opt/ml/checkpoints"


@pytest.mark.parametrize("location", ["s3://", "s3:///job"])
def test_a_bucket_has_a_name(location: str) -> None:
    with pytest.raises(CheckpointPlaceError, match="names no bucket: s3://BUCKET/PREFIX"):
        open_store(location, {})


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ({"s3torchconnector", "tenacity"}, "s3torchconnector[dcp]"),
        ({"tenacity"}, "s3torchconnector[dcp]"),
        ({"boto3", "s3torchconnector"}, "boto3, s3torchconnector[dcp]"),
    ],
)
def test_packages_that_s3_needs_are_named_with_where_to_add_them(
    monkeypatch: pytest.MonkeyPatch, missing: set[str], told: str
) -> None:
    def find_spec(name: str) -> ModuleSpec | None:
        return None if name in missing else ModuleSpec(name, None)

    monkeypatch.setattr("training.preemptible.checkpoint.find_spec", find_spec)
    with pytest.raises(CheckpointPackageError) as refused:
        open_store("s3://bucket/job", {})
    assert str(refused.value) == (
        f"checkpoints in s3://bucket/job need the package {told}, which is not installed: add it as a line "
        "to requirements.txt beside train.py"
    )


def test_a_directory_needs_none_of_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("training.preemptible.checkpoint.find_spec", lambda _: None)
    assert open_store(str(tmp_path), {}).checkpoints() == []
