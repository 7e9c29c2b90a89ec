"""Short runs of the fuzzers of interrupts and kills; the long ones are commands in `tests/fuzz`."""

from __future__ import annotations

import sys

import pytest
from fuzz.fuzz_interrupts import outcomes
from fuzz.fuzz_kills import kills

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="sends signals and reads /proc"),
]


def test_interrupts_at_random_moments_leave_the_process_whole() -> None:
    backends = ("highs", "clarabel", "scs", "libsvm", "active_set")
    for name, said, _ in outcomes(15, 20261118, backends):
        assert said in ("interrupted", "done before"), name


def test_kills_at_random_moments_lose_nothing_and_leave_nobody() -> None:
    tally = kills(6, 20261118)
    assert tally.faults == []
    assert tally.kills >= 6
