"""The program inside the sandbox: takes a plan, gives back an outcome. Started by `emulator.run`."""
from __future__ import annotations

import os
import pickle
import signal
import sys
from pathlib import Path

from emulator import session
from emulator.errors import Interrupted
from emulator.outcome import Outcome
from emulator.plan import Plan
from emulator.progress import Progress
from emulator.sandbox.enter import payload, stop_on_sigterm


def main() -> int:
    """argv: the descriptor to write the outcome to, the bundle's folder, 'cli', 'quiet' or 'run', and the
    descriptor of the network namespace outside."""
    descriptor, folder, mode = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    plan: Plan = pickle.loads(payload())  # written by our own parent
    progress = Progress(quiet=mode == "quiet")
    outside = int(sys.argv[4])
    act = session.command_line if mode == "cli" else session.run
    try:
        stop_on_sigterm()
        outcome = act(plan, progress, folder, outside)
    except Interrupted as stop:  # before the first stage or after the last one
        outcome = Outcome(interrupted=True, error=(stop.exit_status, str(stop)))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # what was measured is handed over whole
    with os.fdopen(descriptor, "wb") as out:
        pickle.dump(outcome, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
