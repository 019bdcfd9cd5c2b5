"""A list of both: each job once, in order, on pages of any size, whatever SageMaker's pages are."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trainmaster_client.errors import InvalidArgumentError
from trainmaster_client.hooks.training_job_lists import summary_of
from trainmaster_client.jobs.job_views import job_view
from trainmaster_client.jobs.merged_lists import TRAINING_JOBS, Cursor, merged, page_size, wanted

MOST_PAGES = 200


def entry(name: str, at: float, status: str = "Completed") -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "CreationTime": at,
        "LastModifiedTime": at,
        "TrainingJobStatus": status,
    }


def sagemaker(entries: list[dict[str, Any]], cursor: Cursor) -> dict[str, Any]:
    """Its page for a cursor: its own token is where the page begins."""
    begin = int(cursor.sagemaker or 0)
    end = begin + cursor.size
    more = {"NextToken": str(end)} if end < len(entries) else {}
    return {"TrainingJobSummaries": entries[begin:end], **more}


def read(theirs: list[dict[str, Any]], queued: list[dict[str, Any]], request: dict[str, Any]) -> list[str]:
    token, names = None, []
    for _ in range(MOST_PAGES):
        cursor = Cursor.read(token, size=page_size(request))
        answer = {} if cursor.is_at_end else sagemaker(theirs, cursor)
        page = merged(TRAINING_JOBS, cursor, answer, queued, request)
        assert len(page.summaries) <= page_size(request)
        names += [one["TrainingJobName"] for one in page.summaries]
        token = page.next_token
        if token is None:
            return names
    raise AssertionError("the list has no end")


@given(
    st.lists(st.integers(0, 50), max_size=12),
    st.lists(st.integers(0, 50), max_size=12),
    st.integers(1, 5),
    st.booleans(),
)
def test_every_job_is_on_one_page_in_the_order_that_was_asked_for(theirs, queued, size, is_descending):
    ended = [entry(f"s{number:02}", at) for number, at in enumerate(theirs)]
    waiting = [entry(f"q{number:02}", at, "InProgress") for number, at in enumerate(queued)]
    first_attempts = [{**one, "TrainingJobStatus": "Stopped"} for one in waiting[::2]]

    def key(one: dict[str, Any]) -> tuple[float, str]:
        return one["CreationTime"], one["TrainingJobName"]

    request = {"SortOrder": "Descending" if is_descending else "Ascending", "MaxResults": size}
    listed = sorted([*ended, *first_attempts], key=key, reverse=is_descending)
    expected = [one["TrainingJobName"] for one in sorted([*ended, *waiting], key=key, reverse=is_descending)]
    assert read(listed, waiting, request) == expected


def test_without_an_order_that_of_sagemakers_page_is_taken():
    newest_first = [entry("c", 30), entry("a", 10)]
    assert read(newest_first, [entry("b", 20)], {}) == ["c", "b", "a"]
    assert read(newest_first[::-1], [entry("b", 20)], {}) == ["a", "b", "c"]


def test_a_job_that_ends_between_two_pages_hides_no_other():
    queued = [entry("a", 1), entry("b", 2), entry("c", 3)]
    request = {"MaxResults": 2, "SortOrder": "Ascending"}
    first = merged(TRAINING_JOBS, Cursor(size=2), {}, queued, request)
    second = merged(TRAINING_JOBS, Cursor.read(first.next_token, size=2), {}, queued[1:], request)
    assert [one["TrainingJobName"] for one in second.summaries] == ["c"]


@pytest.mark.parametrize(
    ("request_", "names"),
    [
        ({"NameContains": "b"}, ["ab", "b"]),
        ({"StatusEquals": "Stopping"}, ["a"]),
        ({"CreationTimeAfter": 15}, ["b"]),
        ({"LastModifiedTimeBefore": 15}, ["a", "ab"]),
    ],
)
def test_filters_hold_for_jobs_of_the_queue(request_, names):
    queued = [entry("a", 10, "Stopping"), entry("ab", 12, "InProgress"), entry("b", 20, "InProgress")]
    assert [one["TrainingJobName"] for one in wanted(TRAINING_JOBS, queued, request_)] == names


@pytest.mark.parametrize("size", [0, 101, "3", True])
def test_a_size_of_pages_that_is_none_is_refused(size):
    with pytest.raises(InvalidArgumentError, match="1 to 100"):
        page_size({"MaxResults": size})


def test_a_token_of_another_service_is_refused():
    with pytest.raises(InvalidArgumentError, match="NextToken"):
        Cursor.read("of-sagemaker", size=10)


def test_a_job_that_waits_is_in_progress():
    job = job_view({"name": "one", "state": "preempted", "submitted_at": "2026-11-21T01:00:00Z"})
    at = datetime(2026, 11, 21, 1, tzinfo=UTC).timestamp()
    assert summary_of(job, arn_prefix="arn:x/") == {
        "TrainingJobName": "one",
        "TrainingJobArn": "arn:x/one",
        "CreationTime": at,
        "LastModifiedTime": at,
        "TrainingJobStatus": "InProgress",
    }
