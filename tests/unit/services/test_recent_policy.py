"""The policy that passes share: read rarely, and never behind what a pool was told."""

from datetime import timedelta

import pytest
from trainmaster.core.records import StoredPolicy
from trainmaster.services.policy_in_force import KEPT, RecentPolicy

from tests.builders import NOON
from tests.memory.policies import MemoryPolicyStore
from tests.memory.tables import Tables

ONE = {"pools": [{"name": "one"}]}
TWO = {"pools": [{"name": "one"}, {"name": "two"}]}


class _Counted(MemoryPolicyStore):
    reads = 0

    def current(self) -> StoredPolicy:
        self.reads += 1
        return super().current()


@pytest.fixture
def policies() -> _Counted:
    counted = _Counted(Tables())
    counted.put(ONE, pools=["one"], replaces=counted.current())
    counted.reads = 0
    return counted


def test_passes_of_a_batch_read_it_once(policies: _Counted) -> None:
    recent = RecentPolicy(policies=policies, clock=lambda: NOON)
    versions = {recent.of_pool("one").stored.version for _ in range(10)}
    assert (versions, policies.reads) == ({1}, 1)


@pytest.mark.parametrize("later", [KEPT, timedelta(seconds=-1)], ids=["too old", "a clock set back"])
def test_it_is_read_again(policies: _Counted, later: timedelta) -> None:
    now = [NOON]
    recent = RecentPolicy(policies=policies, clock=lambda: now[0])
    recent.of_pool("one")
    now[0] += later
    recent.of_pool("one")
    assert policies.reads == 2


def test_a_pool_that_was_told_of_a_newer_one_gets_it_at_once(policies: _Counted) -> None:
    recent = RecentPolicy(policies=policies, clock=lambda: NOON)
    policies.put(TWO, pools=["one", "two"], replaces=recent.of_pool("one").stored)
    assert recent.of_pool("one").stored.version == 1
    assert recent.of_pool("one", at_least=2).stored.version == 2


def test_a_pool_that_it_does_not_have_has_it_read_anew(policies: _Counted) -> None:
    recent = RecentPolicy(policies=policies, clock=lambda: NOON)
    policies.put(TWO, pools=["one", "two"], replaces=recent.of_pool("one").stored)
    assert recent.of_pool("two").policy.pool("two") is not None
