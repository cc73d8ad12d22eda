"""The program that runs inside the sandbox: takes a plan, gives back an outcome. Started by `emulator.run`."""
from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from emulator import sandbox, session
from emulator.plan import Plan
from emulator.progress import Progress


def main() -> int:
    """argv: the descriptor to write the outcome to, the bundle's folder, and 'cli', 'quiet' or 'run'."""
    descriptor, folder, mode = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    sandbox.stop_on_sigterm()
    plan: Plan = pickle.loads(sandbox.payload())  # written by our own parent
    progress = Progress(quiet=mode == "quiet")
    act = session.command_line if mode == "cli" else session.run
    outcome = act(plan, progress, folder)
    with os.fdopen(descriptor, "wb") as out:
        pickle.dump(outcome, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
