"""Starting the sampling process before the traffic, and collecting what it saw after it."""
from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from emulator import errors
from emulator.errors import BadInput, Untrusted
from emulator.fabric.spec import Port
from emulator.readable import can_be_read
from emulator.telemetry.cpu import core_series
from emulator.telemetry.series import QueueSeries, Recording, queue_series
from emulator.telemetry.shared import map_arrays

CPU_BUDGET = 0.10           # of one core
MEMORY_BYTES = 1 << 30      # reserved for the whole deadline; taken only as far as a run goes
_READY_S, _STOP_S = 30.0, 15.0
_ROOT = Path(__file__).resolve().parents[2]


class QueueSampler:
    """A process that samples the queues of `ports` and the cores of the machine until `stop`.

    Switch ports (netns None) are sampled `rate_hz` times a second, host ports at most 25 times;
    both less often where `cpu_budget` (cores) or the memory for `deadline_s` seconds require it:
    `rate_hz` then says what was chosen. Start it from the main thread: the kernel kills it when the
    thread that started it ends.
    """

    def __init__(self, ports: Sequence[Port], rate_hz: float, deadline_s: float,
                 cpu_budget: float = CPU_BUDGET) -> None:
        if not ports or rate_hz <= 0 or deadline_s <= 0 or cpu_budget <= 0:
            raise BadInput(f"A sampler needs ports ({len(ports)}), a rate ({rate_hz} Hz), a deadline "
                           f"({deadline_s} s) and a CPU budget ({cpu_budget}) above zero.")
        self.asked_hz = rate_hz
        switch = tuple(port for port in ports if port.netns is None)
        hosts = tuple(port for port in ports if port.netns is not None)
        self._groups = [group for group in (switch, hosts) if group]
        self._memory = os.memfd_create("queue samples")
        self._errors = tempfile.TemporaryFile()
        request = {"parent": os.getpid(), "descriptor": self._memory, "rate_hz": rate_hz,
                   "deadline_s": deadline_s, "budget": cpu_budget, "memory_bytes": MEMORY_BYTES,
                   "hosts": self._groups.index(hosts) if hosts else -1,
                   "groups": [[(port.netns, port.ifindex) for port in group] for group in self._groups]}
        # a file rather than a pipe: a process that fails to start cannot break it
        with tempfile.TemporaryFile("w+") as asked:
            asked.write(json.dumps(request) + "\n")
            asked.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "emulator.telemetry.sample_loop"], pass_fds=[self._memory],
                stdin=asked, stdout=subprocess.PIPE, stderr=self._errors, text=True,
                env={**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONSAFEPATH": "1",
                     "OPENBLAS_NUM_THREADS": "1"})
        try:
            answer = self._line(_READY_S)
        except BaseException:
            self.close()
            raise
        self._periods_s = answer["periods_s"]
        self.rate_hz = 1 / min(self._periods_s)
        self._arrays = map_arrays(self._memory, {name: (dtype, tuple(shape))
                                                 for name, (dtype, shape) in answer["layout"].items()})

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> Recording:
        """End the sampling; what was seen. Raises Untrusted if the process had ended by itself."""
        try:
            self._arrays["stop"][0] = 1
            last = self._line(_STOP_S)
            self._process.wait(_STOP_S)
        finally:
            self.close()
        series = tuple(self._series(index, group) for index, group in enumerate(self._groups))
        seconds = self._rows("cores")
        cores = core_series(self._arrays["cores.time_s"][:seconds], self._arrays["cores.ticks"][:seconds])
        return Recording(series, cores, self.asked_hz, self.rate_hz, last["cpu_share"], last["full"])

    def _rows(self, prefix: str) -> int:
        return int(self._arrays[f"{prefix}.count"][0])

    def _series(self, index: int, ports: tuple[Port, ...]) -> QueueSeries:
        rows = self._rows(str(index))
        time_s, read_s, lateness_s, words = (
            self._arrays[f"{index}.{name}"][:rows] for name in ("time_s", "read_s", "lateness_s", "words"))
        return queue_series(ports, self._periods_s[index], time_s, read_s, lateness_s, words,
                            self._arrays[f"{index}.unshaped_s"])

    def _line(self, timeout_s: float) -> dict:
        """The process's next line; its error is raised here."""
        readable = can_be_read(self._process.stdout, timeout_s)
        line = self._process.stdout.readline() if readable else ""
        if not line:
            what = "ended by itself" if readable else f"did not answer within {timeout_s:g} s"
            raise Untrusted(f"The queue sampler {what} ({self._last_error()}); the queues of this run were "
                            f"not recorded. Start it again.")
        answer = json.loads(line)
        if "error" in answer:
            raise getattr(errors, answer["kind"])(answer["error"])
        return answer

    def _last_error(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "no message"

    def close(self) -> None:
        """End the process if it still runs, and let go of what it needed; harmless when repeated."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        for stream in (self._process.stdout, self._errors):
            stream.close()
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1

    def __enter__(self) -> QueueSampler:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()
