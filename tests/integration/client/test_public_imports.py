"""What the documents tell users to import stays where they know it, whichever room it lives in."""

import importlib

import pytest
from trainmaster_client.bypasses import QueueBypassWarning, RoundTheQueueWarning

PUBLIC = (
    "api.ApiClient",
    "bypasses.QueueBypassWarning",
    "bypasses.RoundTheQueueWarning",
    "errors.ConflictError",
    "errors.PolicyViolationError",
    "errors.TrainmasterClientError",
    "handles.Job",
    "handles.Jobs",
    "handles.job",
    "handles.jobs",
    "handles.submit",
    "hook.RoundTheQueueWarning",
    "hook.install",
    "hook.install_on_client",
    "job_options.JobOptions",
    "job_options.Tag",
    "job_options.job_tags",
    "launcher.LAUNCHER",
    "report.Report",
    "session.QueueTrainingJobSession",
    "session.WaitInterruptedError",
    "trainer.attach",
    "trainer.queue",
    "trainer.use_launcher",
)


@pytest.mark.parametrize("path", PUBLIC)
def test_it_can_be_imported(path: str) -> None:
    module, _, name = path.rpartition(".")
    assert hasattr(importlib.import_module(f"trainmaster_client.{module}"), name)


def test_a_filter_with_the_warnings_former_name_catches_it() -> None:
    assert RoundTheQueueWarning is QueueBypassWarning
