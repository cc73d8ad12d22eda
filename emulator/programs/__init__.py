"""Real programs on the fabric: one process a rank on its host, started, watched, measured, ended.

Not here: what is measured on links and queues (emulator/telemetry), and how it is judged (emulator/fidelity).
"""
