"""The 64-bit parameter of a selection method."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.asic.pipeline import MODES
from emulator.asic.selection import Choice, decode_selection, encode_param
from emulator.errors import BadInput


@settings(deadline=None)
@given(st.sampled_from(MODES), st.integers(0, 2**64 - 1))
def test_what_is_decoded_can_be_said_again(method: str, param: int) -> None:
    try:
        choice = decode_selection(method, param)
    except BadInput:
        assert (method == "flowlet" and param >> 32 == 0) or (method == "spray" and param >> 32 > 1)
        return
    assert choice.mode == method
    assert encode_param(choice) == param


@pytest.mark.parametrize("choice", [
    Choice("flowlet", seed=5, flowlet_gap_s=0.0), Choice("flowlet", seed=5, flowlet_gap_s=1e-7),
    Choice("hash", seed=2**64), Choice("hash", seed=-1), Choice("spray", seed=1, flowlet_gap_s=1.0),
    Choice("hash", random_spray=True), Choice("spray", seed=2**32)])
def test_what_cannot_be_said_is_refused(choice: Choice) -> None:
    with pytest.raises(BadInput):
        encode_param(choice)


def test_an_unknown_method_names_the_nearest() -> None:
    with pytest.raises(BadInput, match="flowlet"):
        decode_selection("flowlets", 0)
