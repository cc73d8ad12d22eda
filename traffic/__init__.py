"""What a training job sends: schedules, collectives, job models, importers, ideal times, the engine.

All of it is pure except `engine.py` and `transport.py`, which move real bytes between hosts.
"""
