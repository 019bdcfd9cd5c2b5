"""Correct predicted quantiles by how those of earlier jobs turned out.

Lengths that are learned from ended jobs come out short: of the jobs of a rush the short ones end first. So
each ended job notes its place among the lengths that were predicted for it. Where more than a tenth of the
jobs outlasted the p90 of theirs, the next p90 is a higher quantile. Source: the idea is that of Gibbs and
Candes (2021), "Adaptive conformal inference under distribution shift"; here the errors fade by forward decay.
"""

from itertools import accumulate

from trainmaster.core.durations.histogram import Histogram

SHARES = tuple((2 * number + 1) / 20 for number in range(10))
"""Shares of the jobs that the ten likely lengths stand for: the middle of each tenth."""
UNDOUBTED_JOBS = 30.0
"""Number of jobs that count as placed where they were expected: a few surprises correct little."""
GAIN = 2.0
"""Correction for each share of the jobs that ended on the wrong side of a predicted length."""
LEAST_SHARE, MOST_SHARE = 0.01, 0.99


def corrected(places: Histogram) -> tuple[float, ...]:
    """Return the shares at which to read off the ten lengths, rising.

    Args:
        places: Jobs by place, 0 to 10: the number of the predicted lengths that a job has outlasted.
    """
    jobs = places.total + UNDOUBTED_JOBS
    ended = accumulate(places.weights.get(place, 0.0) for place in range(len(SHARES)))
    errors = (share - (share * UNDOUBTED_JOBS + by) / jobs for share, by in zip(SHARES, ended, strict=True))
    wanted = (share + GAIN * error for share, error in zip(SHARES, errors, strict=True))
    return tuple(accumulate((min(max(share, LEAST_SHARE), MOST_SHARE) for share in wanted), max))
