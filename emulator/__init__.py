"""The emulator: command line, sandbox, fabric, telemetry, fidelity verdict, result bundle, report.

Routing lives in `controllers`, graphs in `topologies`, what a job sends in `traffic`.
"""
__version__ = "0.1.0"
