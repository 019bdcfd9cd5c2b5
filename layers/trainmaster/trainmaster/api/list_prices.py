"""Where the shipped prices are not those of the stack's region, and who has to know."""

from trainmaster.api.request_context import RequestContext
from trainmaster.core.costs.prices import SHIPPED_REGION, PriceTable
from trainmaster.core.errors import FieldError
from trainmaster.core.policy import Policy

MOST_NAMED = 5
"""Types that a warning names; the rest is counted."""


def price_warnings(context: RequestContext, policy: Policy) -> tuple[FieldError, ...]:
    """That types of the pools have the price of another region; none where the region is not known."""
    region = context.outside.region
    types = {name for pool in policy.pools for name in pool.instance_types}
    shipped = PriceTable(overrides=policy.prices).shipped(types)
    if region in ("", SHIPPED_REGION) or not shipped:
        return ()
    more = f" and {len(shipped) - MOST_NAMED} more" if len(shipped) > MOST_NAMED else ""
    named = ", ".join(shipped[:MOST_NAMED])
    warning = FieldError(
        field="prices",
        message=f"lack {named}{more}: costs count with list prices of {SHIPPED_REGION}, and this is {region}",
        hint=f"write what {region} costs, for example prices: {{{shipped[0]}: 1.23}}",
    )
    return (warning,)
