"""A real data-parallel training job for the fabric: PyTorch DDP over gloo, checked against one process.

    sudo ./lab run --run torchrun:ranks=8 labs/ddp.py        (needs PyTorch: pip install torch)

Every rank trains the same small network on its share of each batch; DDP averages the gradients over the
fabric. Rank 0 then trains alone on whole batches and compares the gradients of every step.
"""
from __future__ import annotations

import argparse
import os
import sys

import torch
import torch.distributed as distributed
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TOLERANCE = 1e-6
SAMPLES_A_RANK = 16


def network(width: int) -> nn.Module:
    """Three layers in double precision; about width * (width + 34) parameters of 8 bytes."""
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(32, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(),
                         nn.Linear(width, 1)).double()


def batch(step: int, world: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets of one step, for all ranks together."""
    source = torch.Generator().manual_seed(1000 + step)
    x = torch.randn(world * SAMPLES_A_RANK, 32, generator=source, dtype=torch.float64)
    return x, torch.sin(x.sum(1, keepdim=True))


def train(model: nn.Module, steps: int, world: int, share: slice,
          after_step=lambda: None) -> list[list[torch.Tensor]]:
    """Gradients of every step; plain SGD on `share` of each batch."""
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    gradients = []
    for step in range(steps):
        x, y = batch(step, world)
        optimiser.zero_grad()
        nn.functional.mse_loss(model(x[share]), y[share]).backward()
        gradients.append([parameter.grad.clone() for parameter in model.parameters()])
        optimiser.step()
        after_step()
    return gradients


def main() -> int:
    options = argparse.ArgumentParser(description="Train a small network with DDP over gloo.")
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--width", type=int, default=128)
    options.add_argument("--bucket-kb", type=int, default=32, help="gradients that DDP sends at once")
    asked = options.parse_args()
    torch.set_num_threads(1)
    marks = open(os.environ.get("FABRIC_MARKS", os.devnull), "w", buffering=1)

    distributed.init_process_group("gloo")
    rank, world = distributed.get_rank(), distributed.get_world_size()
    model = DistributedDataParallel(network(asked.width), bucket_cap_mb=asked.bucket_kb / 1024)
    distributed.barrier()
    print("start", file=marks)  # start-up is over: what follows is measured
    share = slice(rank * SAMPLES_A_RANK, (rank + 1) * SAMPLES_A_RANK)
    gradients = train(model, asked.steps, world, share, lambda: print("step", file=marks))

    status = 0
    if rank == 0:
        alone = train(network(asked.width), asked.steps, world, slice(None))
        pairs = [pair for mine, other in zip(gradients, alone) for pair in zip(mine, other)]
        worst = max(float((a - b).abs().max()) for a, b in pairs)
        count = sum(parameter.numel() for parameter in model.parameters())
        print(f"{count} parameters, {asked.steps} steps, {world} ranks: gradients differ "
              f"from those of one process by {worst:.3g} at most")
        status = 0 if worst <= TOLERANCE else 1
        if status:
            print(f"gradients differ by {worst:.3g}, more than {TOLERANCE}", file=sys.stderr)
    distributed.barrier()
    distributed.destroy_process_group()
    return status


if __name__ == "__main__":
    sys.exit(main())
