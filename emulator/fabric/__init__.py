"""The fabric in the kernel: hosts, links, queues and switches, built in bulk inside a sandbox.

Routing is not here (see `controllers`), nor what is measured (see `emulator.telemetry`).
"""
