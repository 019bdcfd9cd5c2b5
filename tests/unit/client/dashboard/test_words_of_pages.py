"""Words that the pages know by heart are the plane's: kinds of events, causes of cost, ends of attempts."""

import re

from trainmaster.core.costs.ledger import Cause
from trainmaster.core.jobs.reason_codes import ReasonCode
from trainmaster.core.outbox.messages import NoticeKind
from trainmaster_client.dashboard.web_files import web_files

FILES = web_files()


def words(path: str, name: str) -> set[str]:
    """The strings of a list or a set that a module has as a constant."""
    found = re.search(rf"const {name} = (?:new Set\()?\[(.*?)\]", FILES[path].content.decode(), re.DOTALL)
    assert found is not None, name
    return set(re.findall(r'"([^"]+)"', found[1]))


def test_the_filter_of_events_has_all_kinds() -> None:
    assert words("events/feed.js", "KINDS") == {kind.value for kind in NoticeKind}


def test_the_kinds_that_are_shown_louder_are_kinds() -> None:
    louder = words("events/feed.js", "TROUBLES") | words("events/feed.js", "NOTICES")
    assert louder < {kind.value for kind in NoticeKind}


def test_each_cause_of_cost_has_a_name_and_a_remedy() -> None:
    text = FILES["money/figures.js"].content.decode()
    causes = re.search(r"export const CAUSES = \{(.*?)\n\};", text, re.DOTALL)
    assert causes is not None
    assert set(re.findall(r"^  (\w+): \{", causes[1], re.MULTILINE)) == {cause.value for cause in Cause}


def test_ends_that_are_drawn_as_stops_are_codes_of_reasons() -> None:
    assert words("timeline/tracks.js", "STOPS") < {code.value for code in ReasonCode}
