"""The verdict: can this run be trusted? Checks 1 to 8 of the contract on what one run observed.

Nothing here reads the kernel (see `emulator.telemetry`) or knows how a run is made.
"""
from emulator.fidelity.observations import Check, Observations, PathDelay, Planned, Verdict
from emulator.fidelity.verdict import judge

__all__ = ["Check", "Observations", "PathDelay", "Planned", "Verdict", "judge"]
