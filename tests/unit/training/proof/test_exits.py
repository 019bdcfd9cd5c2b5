import pytest

from training.proof.exits import allowed_exits


@pytest.mark.parametrize(
    ("kill", "sent_at", "done", "allowed"),
    [
        pytest.param(None, None, 0, [0], id="left alone it completes"),
        pytest.param("7:TERM", 7, 0, [143], id="asked to stop it stops"),
        pytest.param("7:INT", 8, 0, [143], id="by Ctrl-C too"),
        pytest.param("7:KILL", 7, 0, [-9], id="killed it is dead"),
        pytest.param("27:TERM", 27, 20, [143], id="three steps are enough to agree"),
        pytest.param("27:TERM", 28, 20, [143, 0], id="two may not be"),
        pytest.param("29:KILL", 29, 20, [-9], id="a kill needs no agreement"),
        pytest.param("28:TERM", None, 30, [0], id="nothing was left to train"),
        pytest.param("28:KILL", None, 30, [0], id="nothing was left to kill"),
        pytest.param("7:TERM", None, 0, [143], id="a signal that was never sent is a mistake"),
    ],
)
def test_exit_codes(kill: str | None, sent_at: int | None, done: int, allowed: list[int]) -> None:
    assert allowed_exits(kill, sent_at=sent_at, done=done, steps=30) == allowed
