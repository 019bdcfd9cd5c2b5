import json
from pathlib import Path

import pytest

from training.checkpoint import CheckpointDirectory
from training.checkpoint.directory import Torn, restore_index

OPTIONS = {"seed": "1"}


def _publish(directory: CheckpointDirectory, *steps: int) -> None:
    for step in steps:
        written = directory.incomplete(step)
        written.mkdir()
        (written / "__0_0.distcp").write_bytes(b"weights of step %d" % step)
        (written / ".metadata").write_bytes(b"index")
        directory.publish(step, total_steps=60, options=OPTIONS)


@pytest.fixture
def directory(tmp_path: Path) -> CheckpointDirectory:
    return CheckpointDirectory(tmp_path)


def _steps(directory: CheckpointDirectory) -> list[int]:
    return [one.step for one in directory.survey()[0]]


def test_an_empty_directory_holds_nothing(directory: CheckpointDirectory) -> None:
    assert directory.survey() == ([], [])


def test_what_was_published_is_found_with_its_options(directory: CheckpointDirectory) -> None:
    _publish(directory, 10)
    ((found,), torn) = directory.survey()
    assert (found.step, dict(found.options), torn) == (10, OPTIONS, [])


def test_the_main_file_is_named_as_its_object_in_s3_and_hashed(directory: CheckpointDirectory) -> None:
    _publish(directory, 10)
    ((found,), _) = directory.survey()
    assert found.main_file == "step-00000010/__0_0.distcp"
    assert found.sha256() == "ddea3b1396ab2614d057d008bca51fb871604c8e510598325cf9f99cc294b90f"


def test_the_last_two_are_kept(directory: CheckpointDirectory) -> None:
    _publish(directory, 5, 10, 15)
    assert _steps(directory) == [15, 10]


def test_the_status_names_the_newest(directory: CheckpointDirectory, tmp_path: Path) -> None:
    _publish(directory, 5, 10)
    status = json.loads((tmp_path / "status.json").read_bytes())
    assert status.pop("updated_at").endswith("+00:00")
    assert status == {"step": 10, "steps": 60, "checkpoint": "step-00000010"}


def _remove_main(path: Path) -> None:
    (path / "__0_0.distcp").unlink()


def _cut_main(path: Path) -> None:
    (path / "__0_0.distcp").write_bytes(b"we")


def _remove_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


def _cut_manifest(path: Path) -> None:
    text = (path / "manifest.json").read_bytes()
    (path / "manifest.json").write_bytes(text[: len(text) // 2])


@pytest.mark.parametrize(
    ("tear", "reason"),
    [
        pytest.param(_remove_main, "__0_0.distcp is missing", id="a shard is not there"),
        pytest.param(_cut_main, "__0_0.distcp has 2 bytes of 18", id="a shard is cut"),
        pytest.param(_remove_manifest, "manifest.json is missing", id="the manifest is not there"),
        pytest.param(_cut_manifest, "manifest.json cannot be read", id="the manifest is cut"),
    ],
)
def test_a_torn_checkpoint_is_not_used_and_told(tmp_path: Path, tear, reason: str) -> None:
    directory = CheckpointDirectory(tmp_path)
    _publish(directory, 5, 10)
    tear(tmp_path / "step-00000010")
    whole, torn = directory.survey()
    assert [one.step for one in whole] == [5]
    assert torn == [Torn(name="step-00000010", reason=reason)]


def test_a_torn_checkpoint_is_replaced_when_its_step_comes_again(tmp_path: Path) -> None:
    directory = CheckpointDirectory(tmp_path)
    _publish(directory, 5, 10)
    _cut_main(tmp_path / "step-00000010")
    _publish(directory, 10)
    assert directory.survey()[1] == []
    assert _steps(directory) == [10, 5]


def test_a_torn_checkpoint_does_not_count_as_one_of_the_kept(tmp_path: Path) -> None:
    directory = CheckpointDirectory(tmp_path)
    _publish(directory, 10, 20)
    _cut_main(tmp_path / "step-00000020")
    _publish(directory, 15)
    assert _steps(directory) == [15, 10]
    assert not (tmp_path / "step-00000020").exists()


def test_one_that_is_being_written_does_not_exist_yet_and_goes_with_the_next_attempt(
    directory: CheckpointDirectory, tmp_path: Path
) -> None:
    _publish(directory, 5)
    directory.incomplete(10).mkdir()
    assert _steps(directory) == [5]
    directory.clear_incomplete()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["status.json", "step-00000005"]


def test_a_mirror_without_dotfiles_is_whole_and_gets_its_index_back(tmp_path: Path) -> None:
    directory = CheckpointDirectory(tmp_path)
    _publish(directory, 5)
    index = tmp_path / "step-00000005" / ".metadata"
    index.unlink()
    ((found,), _) = directory.survey()
    restore_index(found)
    assert index.read_bytes() == b"index"
