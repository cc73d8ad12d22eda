"""Propagation delay of links (`--delay`): netem or a relay between the two ends of each, and how late it was.

Links are made by `emulator.fabric.build`; what a delay does to ideal times is in `traffic.wire`.
"""
