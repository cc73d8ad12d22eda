"""Pairwise all-to-all, ring send-receive and the dissemination barrier."""
from __future__ import annotations

from traffic.collectives.arguments import check_arguments
from traffic.program import Program, pieces, split
from traffic.schedule import Schedule


def all_to_all(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Each rank sends block j of its `size_bytes` to rank j (MPI's pairwise exchange, n-1 steps).

    In step k rank r sends to r+k and receives from r-k; slice i goes out when slice i of the step before was
    received and the one that this rank sent was acknowledged (MPI_Sendrecv): a rank that went on with its own
    block still under way would send two at once, halve what either receiver gets, and so make others late.
    The data buffer holds the blocks to send, and behind them `received_at` the places of those that come.
    The block that a rank keeps stays where it is.
    """
    check_arguments("pairwise all-to-all", ranks, size_bytes, slices, channels)
    program, blocks = Program(ranks), split(0, size_bytes, ranks)
    came: list[list[int]] = [[] for _ in range(ranks)]  # of the step before, slice by slice
    went: list[list[int]] = [[] for _ in range(ranks)]
    for step in range(1, ranks):
        landed: list[list[int]] = [[] for _ in range(ranks)]
        sent: list[list[int]] = [[] for _ in range(ranks)]
        for source in range(ranks):
            destination = (source + step) % ranks
            low, high = blocks[destination]
            place = received_at(ranks, size_bytes, source)
            for number, (channel, start, end) in enumerate(pieces(low, high, slices, channels)):
                deps = (*_at(came[source], number), *_at(went[source], number))
                send, recv = program.message(source, destination, end - start, deps=tuple(sorted(deps)),
                                             offset=start, to=place + start - low, channel=channel,
                                             phase="all-to-all", step=step - 1)
                landed[destination].append(recv)
                sent[source].append(send)
        # where a block is empty nothing moves, and the step before is what to wait for
        came = [new or old for new, old in zip(landed, came)]
        went = [new or old for new, old in zip(sent, went)]
    return program.schedule("pairwise all-to-all", received_at(ranks, size_bytes, ranks))


def _at(slices: list[int], number: int) -> list[int]:
    """The slice of that number, or the last where there are fewer; nothing where there is none."""
    return slices[min(number, len(slices) - 1):][:1]


def received_at(ranks: int, size_bytes: int, source: int) -> int:
    """Where in the buffer the block from `source` lands: after the input, all places equally large."""
    return size_bytes + source * -(-size_bytes // ranks)


def send_recv(ranks: int, size_bytes: int, slices: int = 1, channels: int = 1) -> Schedule:
    """Each rank sends `size_bytes` to the next and receives as much from the one before (nccl-tests).

    What comes lands behind what is sent: the buffer has twice `size_bytes`.
    """
    check_arguments("ring send-recv", ranks, size_bytes, slices, channels)
    program = Program(ranks)
    for source in range(ranks if ranks > 1 else 0):
        for channel, start, end in pieces(0, size_bytes, slices, channels):
            program.message(source, (source + 1) % ranks, end - start, offset=start, to=size_bytes + start,
                            channel=channel, phase="send-recv")
    return program.schedule("ring send-recv", 2 * size_bytes)


def barrier(ranks: int) -> Schedule:
    """No rank ends before all have started: ceil(log2(n)) rounds of one-byte messages.

    (Hensgen, Finkel and Manber, International Journal of Parallel Programming 1988.)
    """
    check_arguments("dissemination barrier", ranks, 1)
    program = Program(ranks)
    deps: list[tuple[int, ...]] = [()] * ranks
    distance, step = 1, 0
    while distance < ranks:
        came: list[tuple[int, ...]] = [()] * ranks
        for source in range(ranks):
            destination = (source + distance) % ranks
            _, recv = program.message(source, destination, 1, deps=deps[source], phase="barrier", step=step)
            came[destination] = (recv,)
        deps = [old + new for old, new in zip(deps, came)]
        distance, step = 2 * distance, step + 1
    return program.schedule("dissemination barrier")
