"""What a training job sends: schedules, collectives, job models, importers, ideal times, the engine.

All of it is pure except `engine.py`, `tcp.py` and `cores.py`, which move real bytes between hosts.
"""
