"""The histograms of ``summary.json``: nanoseconds in bins that are at most 0.1 % wide."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Histogram"]

#: Values below this have a bin of their own; above it there are as many bins for two doublings.
_EXACT_BELOW = 2_048


def _highest(lowest: int) -> int:
    """Return the largest value that falls into the bin that begins at ``lowest``."""
    if lowest < _EXACT_BELOW:
        return lowest
    width = 1 << (lowest.bit_length() - _EXACT_BELOW.bit_length() + 1)
    return lowest + width - 1


@dataclass(frozen=True)
class Histogram:
    """Values in nanoseconds. Count, sum, smallest and largest are exact."""

    count: int = 0
    sum_ns: int = 0
    min_ns: int | None = None
    max_ns: int | None = None
    #: How many values there are by the lowest value of each bin.
    bins: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Histogram:
        """Return the histogram that an object of ``summary.json`` holds."""
        bins = {int(lowest): int(count) for lowest, count in stored["bins"]}
        if sum(bins.values()) != stored["count"]:
            raise ValueError(f"the bins do not add up to the count {stored['count']}")
        return cls(
            count=stored["count"],
            sum_ns=int(stored["sum"]),
            min_ns=stored["min"],
            max_ns=stored["max"],
            bins=bins,
        )

    @classmethod
    def merged(cls, histograms: Iterable[Histogram]) -> Histogram:
        """Return all values of several histograms: exact, whatever their order."""
        count = total = 0
        lowest: int | None = None
        highest: int | None = None
        bins: dict[int, int] = {}
        for each in histograms:
            count += each.count
            total += each.sum_ns
            if each.min_ns is not None and each.max_ns is not None:
                lowest = each.min_ns if lowest is None else min(lowest, each.min_ns)
                highest = each.max_ns if highest is None else max(highest, each.max_ns)
            for bin_lowest, bin_count in each.bins.items():
                bins[bin_lowest] = bins.get(bin_lowest, 0) + bin_count
        return cls(count, total, lowest, highest, bins)

    @property
    def mean_ns(self) -> float | None:
        """Return the mean; ``None`` without values."""
        return self.sum_ns / self.count if self.count else None

    def percentile_ns(self, percent: float) -> int | None:
        """Return the value of rank ``percent`` (0 to 100), as the report rounds it.

        It is the upper end of its bin, so at most 0.1 % above the true value, and never outside the
        smallest and the largest. ``None`` without values.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"{percent} is no percentile: 0 to 100")
        if not self.count or self.min_ns is None or self.max_ns is None:
            return None
        # Nudged down by less than any true fraction: 99.9 % of 1,000 is rank 999.
        rank = max(math.ceil(percent / 100 * self.count * (1 - 1e-12)), 1)
        seen = 0
        for lowest in sorted(self.bins):
            seen += self.bins[lowest]
            if seen >= rank:
                return min(max(_highest(lowest), self.min_ns), self.max_ns)
        return self.max_ns
