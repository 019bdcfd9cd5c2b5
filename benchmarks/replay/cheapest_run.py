"""The cheapest way for one job to run, when each second of an instance has a price and delay has its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappush, heapreplace

from benchmarks.replay.oracle import Demand, Step

ENDLESS = 1 << 60


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of an instance for a second, by slot from second 0; the last slot has no end, and is free."""

    slot_s: int
    slots: list[float]

    @classmethod
    def falling(cls, steps: Sequence[Step], slot_s: int) -> "Prices":
        """Make prices that fall by the least worth that runs while jobs wait, and are 0 if none waits."""
        slots = [0.0] * (steps[-1].until_s // slot_s + 2 if steps else 1)
        after = 0.0
        for since_s, until_s, worth in reversed(steps):
            if not worth:
                after = 0.0
                continue
            end_s = until_s
            while end_s > since_s:
                slot = (end_s - 1) // slot_s
                begin_s = max(since_s, slot * slot_s)
                middle = after + worth * (until_s - (end_s + begin_s) / 2)
                slots[slot] += middle * (end_s - begin_s) / slot_s
                end_s = begin_s
            after += worth * (until_s - since_s)
        return cls(slot_s, slots)

    def moved(self, by: Iterable[float], step: float) -> "Prices":
        """Move the prices by step; none falls below 0, and the last stays free."""
        moved = [max(0.0, price + step * change) for price, change in zip(self.slots, by, strict=True)]
        return Prices(self.slot_s, [*moved[:-1], 0.0])


def cheapest_run(job: Demand, prices: Prices, held: list[float]) -> float:
    """Return the least that the job pays, with its weight for each second of delay.

    It begins with the first seconds that it can have, looks further slot by slot, and gives the most
    expensive that it has for cheaper ones: at each instant it has the cheapest seconds up to then.

    Args:
        job: Runs on all its instances or not at all, at any seconds from its release on.
        prices: Of one instance.
        held: Instance-seconds by slot: what it chooses is added.
    """
    dearest = _first_seconds(job, prices)
    cost = -sum(price * seconds for price, _, seconds in dearest) * job.instances
    for _, slot, seconds in dearest:
        held[slot] += seconds * job.instances
    best, swaps, kept = cost, list[tuple[int, int, int]](), 0
    heapify(dearest)
    slot_s, last = prices.slot_s, len(prices.slots) - 1
    delay_s, slot = 0, min((job.release_s + job.holds_s) // slot_s, last)
    left_s = (slot + 1) * slot_s - (job.release_s + job.holds_s) if slot < last else ENDLESS
    while dearest[0][0] and job.weight * delay_s < best:
        price, (dear, given, seconds) = prices.slots[slot], dearest[0]
        taken = left_s if price >= -dear else min(seconds, left_s)
        delay_s += taken
        left_s -= taken
        if price < -dear:
            heapreplace(dearest, (-price, slot, taken))
            if taken < seconds:
                heappush(dearest, (dear, given, seconds - taken))
            cost -= (-dear - price) * taken * job.instances
            swaps.append((given, slot, taken))
            if (value := job.weight * delay_s + cost) < best:
                best, kept = value, len(swaps)
        if not left_s:
            slot += 1
            left_s = slot_s if slot < last else ENDLESS
    for given, slot, seconds in swaps[:kept]:
        held[given] -= seconds * job.instances
        held[slot] += seconds * job.instances
    return best


def _first_seconds(job: Demand, prices: Prices) -> list[tuple[float, int, int]]:
    """Return the seconds without any delay, as (-price, slot, seconds)."""
    slot_s, last = prices.slot_s, len(prices.slots) - 1
    now, end, seconds_had = job.release_s, job.release_s + job.holds_s, list[tuple[float, int, int]]()
    while now < end:
        slot = min(now // slot_s, last)
        until = end if slot == last else min(end, (slot + 1) * slot_s)
        seconds_had.append((-prices.slots[slot], slot, until - now))
        now = until
    return seconds_had
