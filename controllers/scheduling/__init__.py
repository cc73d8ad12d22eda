"""Global scheduling of elephants over a fabric's paths (Hedera, NSDI'10): demands, placements, rules.

Pure, and free of OpenFlow; `loop.py` ties one period together. The controller app polls and installs.
"""
