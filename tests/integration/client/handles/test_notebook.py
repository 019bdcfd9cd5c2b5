"""A real kernel: a handle is its picture there, and a wait draws it again in place."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.integration.client.fake_api import (
    ACCESS_KEY,
    REGION,
    SECRET_KEY,
    Scripted,
    history,
    running_fake_api,
    view,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the kernel's own packages
    pytest.mark.filterwarnings("ignore::PendingDeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
SETUP = f"""
import os
os.environ |= {{"AWS_ACCESS_KEY_ID": "{ACCESS_KEY}", "AWS_SECRET_ACCESS_KEY": "{SECRET_KEY}",
               "AWS_DEFAULT_REGION": "{REGION}"}}
import trainmaster_client
mine = trainmaster_client.job("job1", api_url=URL)
"""
STEPS = history(("pending", 0, ""), ("completed", 0, ""))


def test_a_job_shows_itself_and_a_wait_draws_it_anew() -> None:
    with running_fake_api() as api:
        waits, over = view(history=STEPS[:1]), view(state="completed", position=None, history=STEPS)
        waits["pool"] = "<script>alert(1)</script>"
        api.script(
            "GET", "/jobs/job1", *(Scripted(document=waits) for _ in range(4)), Scripted(document=over)
        )
        api.script("GET", "/jobs", Scripted(document={"jobs": [waits], "next_token": None}))
        cells = [
            SETUP.replace("URL", repr(api.url)),
            "mine",
            "seen = await mine\nseen.state",
            "mine.wait().state",
            f"trainmaster_client.jobs(api_url={api.url!r})",
        ]
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in cells])
        NotebookClient(book, timeout=60, kernel_name="python3").execute()
    shown, awaited, waited, listed = (cell["outputs"] for cell in book.cells[1:])
    assert "<b>job1</b> pending" in shown[0]["data"]["text/html"]
    assert "<script" not in shown[0]["data"]["text/html"]
    assert shown[0]["data"]["text/plain"].startswith("job1: pending; ")
    for outputs in (awaited, waited):
        drawn, result = outputs
        assert "<b>job1</b> completed" in drawn["data"]["text/html"], "the same picture, drawn again"
        assert result["data"]["text/plain"] == "'completed'"
    assert listed[0]["data"]["text/html"].startswith("<table>")
