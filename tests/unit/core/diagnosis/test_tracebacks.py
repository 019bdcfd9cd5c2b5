"""Which line of a log is the exception that a Python traceback ends with."""

import pytest
from trainmaster.core.diagnosis.diagnosis import raised


def ends(*lines: str) -> list[str]:
    return [exception for exception in raised(lines) if exception is not None]


@pytest.mark.parametrize(
    ("lines", "exceptions"),
    [
        pytest.param(
            ('  File "train.py", line 3, in main', "    fit()", "BadConfig: no such optimizer"),
            ["BadConfig: no such optimizer"],
            id="an exception of any name",
        ),
        pytest.param(
            ('  File "a.py", line 3, in f', "    fit()", "    ^^^^^", "my.pkg.Unsupported"),
            ["my.pkg.Unsupported"],
            id="without a message, below the marks of its source line",
        ),
        pytest.param(
            (
                '[rank1]:   File "a.py", line 3',
                "[rank0]: Mine: not",
                "[rank1]:     fit()",
                "[rank1]: Stop: here",
            ),
            ["Stop: here"],
            id="of one rank among others",
        ),
        pytest.param(
            ('  File "a.py", line 3, in f', "    fit()"), [], id="a traceback whose end is not in the tail"
        ),
        pytest.param(("BadConfig: no such optimizer",), [], id="no traceback at all"),
        pytest.param(
            (
                "Current thread 0x1 (most recent call first):",
                '  File "a.py", line 3 in f',
                "launcher: failed",
            ),
            [],
            id="the stack of a thread is no traceback",
        ),
        pytest.param(
            ('  File "a.py", line 3', "    f()", "loss 0.3 at step 4", "Late: x"),
            [],
            id="a line of the log that came between",
        ),
        pytest.param(
            ('  File "a.py", line 3', "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"),
            [],
            id="a launcher that passes a failure on",
        ),
        pytest.param(
            ('  File "a.py", line 3', "subprocess.CalledProcessError: Command"),
            [],
            id="so do those who wait for a process",
        ),
        pytest.param(
            ('  File "a.py", line 3', "KeyError: 'a'", "", '  File "b.py", line 4', "Bad: b"),
            ["KeyError: 'a'", "Bad: b"],
            id="one that was raised while another was handled",
        ),
    ],
)
def test_the_exception_is_what_follows_the_frames(lines: tuple[str, ...], exceptions: list[str]) -> None:
    assert ends(*lines) == exceptions


def test_each_line_has_its_own_answer() -> None:
    assert list(raised(('  File "a.py", line 3', "    f()", "Bad: b", "end"))) == [None, None, "Bad: b", None]
