"""BPF maps: single and batched access, and arrays mapped into this process's memory."""
from __future__ import annotations

import ctypes
import errno
import mmap
import os
from ctypes import byref, c_uint32

import numpy as np

from emulator.asic.libbpf import RECORD, library
from emulator.errors import EmulatorError

_PAGE = mmap.PAGESIZE


class Map:
    """One BPF map by its file descriptor; sizes in bytes are read from the kernel."""

    def __init__(self, name: str, fd: int) -> None:
        info = (c_uint32 * 64)()
        size = c_uint32(ctypes.sizeof(info))
        status = library().bpf_obj_get_info_by_fd(fd, info, byref(size))
        if status:
            raise EmulatorError(f"the BPF map {name} gives no information: {os.strerror(-status)}.")
        _, self.id, self.key_size, self.value_size, self.max_entries, _ = info[:6]
        self.name, self.fd = name, fd

    @classmethod
    def open(cls, name: str, number: int) -> Map:
        """The map with kernel-wide number `number` (see `id`), from any process of root."""
        fd = library().bpf_map_get_fd_by_id(number)
        if fd < 0:
            raise EmulatorError(f"there is no BPF map {name} ({number}) any more: {os.strerror(-fd)}.")
        return cls(name, fd)

    def _check(self, status: int, what: str) -> None:
        if status:
            hint = f"; it holds {self.max_entries} entries at most" if status == -errno.E2BIG else ""
            raise EmulatorError(f"the BPF map {self.name} refused a {what}: {os.strerror(-status)}{hint}.")

    def update(self, key: bytes, value: bytes) -> None:
        """Insert or replace one entry."""
        self._check(library().bpf_map_update_elem(self.fd, key, value, 0), "update")

    def update_batch(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Insert or replace len(keys) entries with one system call."""
        if len(keys):
            self._batch("bpf_map_update_batch", len(keys), keys, values)

    def delete_batch(self, keys: np.ndarray) -> None:
        """Remove len(keys) entries, which must all exist, with one system call."""
        if len(keys):
            self._batch("bpf_map_delete_batch", len(keys), keys)

    def _batch(self, name: str, count: int, *arrays: np.ndarray) -> None:
        memory = [np.ascontiguousarray(array) for array in arrays]
        for array, size in zip(memory, (self.key_size, self.value_size), strict=False):
            if array.nbytes != count * size:
                raise EmulatorError(f"the BPF map {self.name} has entries of {size} bytes in C and "
                                    f"{array.nbytes // count} in Python; "
                                    "rebuild with python -m emulator.asic.build.")
        done = c_uint32(count)
        status = getattr(library(), name)(self.fd, *(array.ctypes.data for array in memory),
                                           byref(done), None)
        self._check(status, f"batch of {count} after {done.value}" if status else "")

    def array(self, dtype: np.dtype) -> np.ndarray:
        """The whole of a BPF_F_MMAPABLE array map as a live numpy array of shape (max_entries,).

        Reads see what the programs write, without a system call; writes are seen by them at once.
        """
        stride = -(-self.value_size // 8) * 8
        if dtype.itemsize != stride:
            raise EmulatorError(f"the BPF map {self.name} has entries of {stride} bytes in C and "
                                f"{dtype.itemsize} in Python; rebuild with python -m emulator.asic.build.")
        size = self.max_entries * stride
        memory = mmap.mmap(self.fd, -(-size // _PAGE) * _PAGE, mmap.MAP_SHARED,
                           mmap.PROT_READ | mmap.PROT_WRITE)
        return np.frombuffer(memory, dtype, self.max_entries)


class RingBuffer:
    """The reading end of a BPF_MAP_TYPE_RINGBUF; `fd` becomes readable when there is something."""

    def __init__(self, source: Map) -> None:
        self._pending: list[bytes] = []
        self._callback = RECORD(self._take)
        self._pointer = library().ring_buffer__new(source.fd, self._callback, None, None)
        if not self._pointer:
            raise EmulatorError(f"the ring buffer {source.name} cannot be read: "
                                f"{os.strerror(ctypes.get_errno())}.")
        self.fd = library().ring_buffer__epoll_fd(self._pointer)

    def _take(self, _context: int, data: int, size: int) -> int:
        self._pending.append(ctypes.string_at(data, size))
        return 0

    def read(self) -> list[bytes]:
        """All records written since the last call, oldest first."""
        status = library().ring_buffer__consume(self._pointer)
        if status < 0:
            raise EmulatorError(f"the ring buffer cannot be read: {os.strerror(-status)}.")
        records, self._pending = self._pending, []
        return records

    def close(self) -> None:
        if self._pointer:
            library().ring_buffer__free(self._pointer)
            self._pointer = None
