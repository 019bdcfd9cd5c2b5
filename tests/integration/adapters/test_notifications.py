"""Events for whoever listens on the account's default bus."""

import json
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from trainmaster.adapters.notifications import EventBridgeNotifier
from trainmaster.core.errors import UnavailableError


@pytest.fixture
def events(aws: None) -> Any:
    return boto3.client("events")


ENTRY = {
    "Source": "trainmaster",
    "DetailType": "Budget Warning",
    "Detail": json.dumps({"stack": "prod", "team": "vision"}),
}


def test_an_event_says_what_happened_and_in_which_stack(events: Any) -> None:
    with Stubber(events) as stub:
        stub.add_response("put_events", {"FailedEntryCount": 0}, {"Entries": [ENTRY]})
        EventBridgeNotifier(events, stack="prod").tell("Budget Warning", {"team": "vision"})
        stub.assert_no_pending_responses()


def test_an_event_that_was_not_taken_is_told_again_later(events: Any) -> None:
    with Stubber(events) as stub:
        stub.add_response("put_events", {"FailedEntryCount": 1}, {"Entries": [ENTRY]})
        with pytest.raises(UnavailableError):
            EventBridgeNotifier(events, stack="prod").tell("Budget Warning", {"team": "vision"})
