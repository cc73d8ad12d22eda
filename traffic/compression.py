"""Gradient compression, really done: encoders to bytes and back, and what error feedback is for.

Top-k with memory: Stich, Cordonnier and Jaggi, NeurIPS'18; Lin et al., Deep Gradient Compression,
ICLR'18. One bit with scale: Karimireddy et al., EF-SignSGD, ICML'19; Tang et al., 1-bit Adam, ICML'21.
Eight bits with a scale a block: Dettmers, ICLR'16.

None of them composes with an all-reduce: sums of encoded gradients are no encoded gradients. Top-k
gathers the encoded gradients of all; the others exchange encoded chunks (an all-to-all), sum what they
decode, and gather the encoded sums, as 1-bit Adam does.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy

from emulator.errors import BadInput, nearest

INT8_BLOCK = 256
"""Values that share a scale."""
SCALE = numpy.dtype("<f4")
SCHEMES = ("none", "topk:0.01", "int8", "1bit")


@dataclass(frozen=True)
class Scheme:
    """A compressor: `kind` is topk, int8 or 1bit; `fraction` of the values that top-k keeps, else 0."""

    kind: str
    fraction: float = 0.0

    def __str__(self) -> str:
        return f"topk:{self.fraction:g}" if self.kind == "topk" else self.kind

    @property
    def gathers(self) -> bool:
        """All ranks gather all encoded gradients, instead of exchanging chunks and gathering sums."""
        return self.kind == "topk"

    def kept(self, values: int) -> int:
        """How many of `values` numbers top-k sends; at least one."""
        return min(values, max(1, math.ceil(self.fraction * values - 1e-9)))

    def encoded_bytes(self, values: int) -> int:
        """Length of `encode` of so many values."""
        if self.kind == "topk":
            return SCALE.itemsize + 6 * self.kept(values)
        if self.kind == "int8":
            return values + SCALE.itemsize * -(-values // INT8_BLOCK)
        return SCALE.itemsize + -(-values // 8)

    def encode(self, values: numpy.ndarray) -> bytes:
        """Bytes for the wire of a one-dimensional array of finite floats, at least one of them.

        top-k: scale, then 4-byte indices, then values as half floats of the scale. int8: the scale of
        each block, then the values in 127ths of it, rounded. 1bit: the mean magnitude, then signs.
        """
        if self.kind == "topk":
            kept = self.kept(len(values))
            keep = numpy.sort(numpy.argpartition(-abs(values), kept - 1)[:kept])
            scale = SCALE.type(abs(values[keep]).max())
            return (scale.tobytes() + keep.astype("<u4").tobytes()
                    + (values[keep] / (float(scale) or 1.0)).astype("<f2").tobytes())
        if self.kind == "int8":
            scales = _block_scales(values)
            steps = 127 * values / numpy.repeat(numpy.where(scales, scales, 1), INT8_BLOCK)[:len(values)]
            return scales.tobytes() + numpy.rint(steps).clip(-127, 127).astype("i1").tobytes()
        return SCALE.type(abs(values).mean()).tobytes() + numpy.packbits(values >= 0).tobytes()

    def decode(self, data: bytes, values: int) -> numpy.ndarray:
        """The `values` floats that `data` stands for."""
        if len(data) != self.encoded_bytes(values):
            raise BadInput(f"compression {self}: {len(data)} bytes are not the encoding of {values} values, "
                           f"which takes {self.encoded_bytes(values)}.")
        if self.kind == "int8":
            blocks = -(-values // INT8_BLOCK)
            scales = numpy.frombuffer(data, SCALE, blocks).astype(float)
            steps = numpy.frombuffer(data, "i1", offset=SCALE.itemsize * blocks)
            return steps / 127 * numpy.repeat(scales, INT8_BLOCK)[:values]
        scale = float(numpy.frombuffer(data, SCALE, 1)[0])
        if self.kind == "topk":
            kept = self.kept(values)
            made = numpy.zeros(values)
            # as half floats their products would overflow
            shares = numpy.frombuffer(data, "<f2", kept, 4 + 4 * kept).astype(float)
            made[numpy.frombuffer(data, "<u4", kept, 4)] = scale * shares
            return made
        signs = numpy.unpackbits(numpy.frombuffer(data, "u1", offset=4), count=values)
        return scale * (2.0 * signs - 1.0)


def parse_scheme(text: str) -> Scheme | None:
    """'none' (gives None), 'topk:0.01', 'int8' or '1bit'."""
    kind, colon, rest = text.partition(":")
    if kind == "topk" and colon:
        try:
            fraction = float(rest)
        except ValueError:
            fraction = math.nan
        if not 0 < fraction <= 1:
            raise BadInput(f'compression "{text}": the fraction must be above 0 and at most 1, as in '
                           "topk:0.01.")
        return Scheme("topk", fraction)
    if text == "topk":
        raise BadInput('compression "topk" needs the fraction of values to keep, as in topk:0.01.')
    if text not in ("none", "int8", "1bit"):
        raise BadInput(f'compression "{text}" is not known{nearest(text, SCHEMES)}.')
    return None if text == "none" else Scheme(text)


class Feedback:
    """Error feedback of one sender: what an encoding lost is added to what is encoded next."""

    def __init__(self, scheme: Scheme, values: int) -> None:
        self._scheme = scheme
        self.owed = numpy.zeros(values)

    def encode(self, values: numpy.ndarray) -> bytes:
        wanted = values + self.owed
        data = self._scheme.encode(wanted)
        self.owed = wanted - self._scheme.decode(data, len(values))
        return data


def _block_scales(values: numpy.ndarray) -> numpy.ndarray:
    starts = numpy.arange(0, len(values), INT8_BLOCK)
    return numpy.maximum.reduceat(abs(values), starts).astype(SCALE)
