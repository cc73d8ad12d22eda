"""Does training still arrive when gradients are compressed? A small least-squares problem, N workers.

Each worker has rows of its own, so that at the common optimum the workers' gradients are large and
cancel: what distributed training meets with unlike data, and what makes compression without memory
stall (Karimireddy et al., ICML'19; Beznosikov et al., 2020). All runs take the same steps.
`python -m traffic.convergence` prints, for each scheme, the bytes of a message and how far it gets with
error feedback and without.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy

from traffic.compression import SCHEMES, Feedback, Scheme, parse_scheme

WORKERS, VALUES, ROWS, STEPS = 8, 100, 100, 2000


@dataclass(frozen=True)
class Problem:
    """Minimise the mean over workers of |A_w x - b_w|^2 / (2 rows). matrices: (workers, rows, values)."""

    matrices: numpy.ndarray
    targets: numpy.ndarray

    @property
    def optimum(self) -> numpy.ndarray:
        workers, rows, values = self.matrices.shape
        every_row = self.matrices.reshape(workers * rows, values)
        return numpy.linalg.lstsq(every_row, self.targets.ravel(), rcond=None)[0]

    def loss(self, x: numpy.ndarray) -> float:
        return float(((self.matrices @ x - self.targets) ** 2).mean() / 2)

    def gradient(self, worker: int, x: numpy.ndarray) -> numpy.ndarray:
        matrix = self.matrices[worker]
        return matrix.T @ (matrix @ x - self.targets[worker]) / len(matrix)


def problem(seed: int = 0, workers: int = WORKERS, rows: int = ROWS, values: int = VALUES) -> Problem:
    """Random rows; the workers' targets come from unlike true solutions."""
    rng = numpy.random.default_rng(seed)
    matrices = rng.normal(size=(workers, rows, values))
    truth = rng.normal(size=values) + rng.normal(size=(workers, values))
    return Problem(matrices, numpy.einsum("wrv,wv->wr", matrices, truth))


def excess_loss(task: Problem, scheme: Scheme | None, feedback: bool, steps: int = STEPS,
                rate: float = 0.05) -> float:
    """Loss above the optimum's after so many steps, as a share of what there was at the start.

    What travels goes through bytes; the step size falls from `rate` as 1 / (1 + step / 300). Schemes
    that exchange chunks encode a second time, the sum that each chunk's owner made, with an error memory
    of its own.
    """
    workers, _, values = task.matrices.shape
    up = [Feedback(scheme, values) for _ in range(workers)] if scheme else []
    chunks = numpy.array_split(numpy.empty(values), workers)
    owners = [Feedback(scheme, len(chunk)) for chunk in chunks] if scheme else []
    best, x = task.loss(task.optimum), numpy.zeros(values)
    start = task.loss(x) - best
    for step in range(steps):
        gradients = [task.gradient(worker, x) for worker in range(workers)]
        if scheme:
            sent = [up[w].encode(g) if feedback else scheme.encode(g) for w, g in enumerate(gradients)]
            gradients = [scheme.decode(data, values) for data in sent]
        mean = numpy.mean(gradients, axis=0)
        if scheme and not scheme.gathers:
            parts = numpy.array_split(mean, workers)
            sums = [owner.encode(part) if feedback else scheme.encode(part)
                    for owner, part in zip(owners, parts)]
            mean = numpy.concatenate([scheme.decode(data, len(part)) for data, part in zip(sums, parts)])
        x = x - rate / (1 + step / 300) * mean
    return (task.loss(x) - best) / start


def table() -> str:
    """Each scheme: bytes of a message of a million values against bf16, and what is left of the loss."""
    task, million = problem(), 10**6
    lines = [f"Least squares, {WORKERS} workers with unlike data, {VALUES} values, {STEPS} steps; what is "
             "left of the loss above the optimum", "",
             f"{'scheme':<12}{'bytes of 10^6 values':>22}{'of bf16':>10}{'with feedback':>16}{'without':>12}"]
    for text in SCHEMES:
        scheme = parse_scheme(text)
        size_bytes = scheme.encoded_bytes(million) if scheme else 2 * million
        left = [excess_loss(task, scheme, feedback) for feedback in (True, False)]
        lines.append(f"{text:<12}{size_bytes:>22}{size_bytes / (2 * million):>10.2%}"
                     f"{left[0]:>16.2e}{left[1]:>12.2e}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
