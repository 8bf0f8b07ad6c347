"""What a lane has to obey, from values that anybody may have written into Redis."""

from __future__ import annotations

import itertools

import pytest

from redis_components.admin.lanes import STATE_FIELDS, state_from


@pytest.mark.parametrize("value", [b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"9" * 400, b"x", b"\xff", b""])
def test_a_value_that_is_no_number_of_a_lane_counts_as_none(value: bytes) -> None:
    for now, others in itertools.product((0.0, 1.8e9), (b"1", b"1800000000000")):
        for place, _ in enumerate(STATE_FIELDS):
            values = [value if at == place else others for at, _ in enumerate(STATE_FIELDS)]
            state_from(values, now)
        assert state_from([value] * len(STATE_FIELDS), now).refusals == 0
