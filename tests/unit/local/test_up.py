"""What the command prints, and its wait for the end."""

import dataclasses
import shlex
import signal
import threading
from pathlib import Path

from local import up
from local.config import ReadyInfo
from local.twin_process import TwinProcess
from local.up import wait_for

READY = ReadyInfo(
    pid=1,
    endpoint_url="http://127.0.0.1:4599",
    api_url="http://127.0.0.1:4599/_api/a/prod",
    control_url="http://127.0.0.1:4599/_control",
    region="us-east-1",
    account_id="123456789012",
    access_key_id="AKIA",
    secret_access_key="secret",
    role_arn="arn:aws:iam::123456789012:role/training",
    bucket="bucket",
    sdk_defaults="/home/ann/my twin/defaults.yaml",
)


def test_what_it_prints_for_a_shell_is_what_the_tests_run_their_programs_with():
    lines = [shlex.split(line) for line in up._in_words(READY, 1.0).splitlines() if "export " in line]
    printed = dict(words[1].split("=", 1) for words in lines)
    assert [len(words) for words in lines] == [2] * len(lines)
    process = TwinProcess(ready=dataclasses.asdict(READY), journal=Path("journal"))
    assert printed == process.environment()


def test_a_signal_that_does_not_interrupt_the_wait_is_heard_all_the_same():
    stop = threading.Event()
    before = signal.signal(signal.SIGUSR1, lambda *_: stop.set())
    elsewhere = threading.Timer(0.05, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGUSR1))
    elsewhere.start()
    try:
        wait_for(stop)
    finally:
        elsewhere.join()
        signal.signal(signal.SIGUSR1, before)
    assert stop.is_set()
