"""Runs one scene inside a sandbox: `python -m tests.asic.scene MODULE FUNCTION RESULT.json`.

A scene is a function of tests.asic.MODULE; it takes the payload's arguments and returns plain data.
"""
from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

from emulator.sandbox.enter import payload

if __name__ == "__main__":
    module, function, result = sys.argv[1:]
    play = getattr(importlib.import_module(f"tests.asic.{module}"), function)
    Path(result).write_text(json.dumps(play(**json.loads(payload()))))
