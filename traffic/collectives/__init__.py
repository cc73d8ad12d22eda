"""Collective operations as schedules, one algorithm family a file.

Each takes ranks and bytes and returns a Schedule whose data can be verified (`traffic.interpret`);
the `write_…` functions add one to a larger Program. Which algorithm when is the caller's choice.
"""
