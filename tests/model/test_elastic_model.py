"""One elastic job and one that goes before it, on two instances: every order of events, and of faults.

The elastic job has one instance or two. It shrinks for the other and grows back into its room. In every
state the counters are the sums over the jobs, both use no more than two instances, and SageMaker runs each
live attempt at just the width that was claimed (I1, I2, I6, I20); from every state both jobs end.
"""

import pytest

from tests.model.exploring import Budget, Explorer


@pytest.mark.parametrize(
    "budget",
    [
        pytest.param(Budget(), id="no fault"),
        pytest.param(Budget(crashes=1), id="one process dies", marks=pytest.mark.thorough),
        pytest.param(Budget(cancels=1), id="one job is stopped", marks=pytest.mark.thorough),
        pytest.param(Budget(no_capacity=1), id="AWS has no instances once", marks=pytest.mark.thorough),
        pytest.param(Budget(lost=1), id="an answer is lost", marks=pytest.mark.thorough),
        pytest.param(Budget(refusals=1), id="the account refuses once", marks=pytest.mark.thorough),
    ],
)
def test_whatever_happens_between_them_no_width_exceeds_the_pool_and_both_end(budget: Budget) -> None:
    explorer = Explorer(budget, warm_pools=False, elastic=True)
    found = explorer.explore()
    assert found.stuck == [], "\n".join(explorer.story(found.stuck[0]))
    assert explorer.widths() >= {(1, None), (2, None), (2, "shrink"), (1, "grow")}
