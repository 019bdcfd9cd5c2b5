import pytest

from training.preemptible.checkpoint.store import is_checkpoint, name_of


def test_names_sort_as_their_steps() -> None:
    assert [name_of(20), name_of(123_456_789)] == ["step-00000020", "step-123456789"]


@pytest.mark.parametrize("name", ["status.json", "step-", "step-2x", ".step-00000002", "step-²"])
def test_other_names_are_not_checkpoints(name: str) -> None:
    assert not is_checkpoint(name)
    assert is_checkpoint("step-00000002")
