"""The functions of libbpf.so.1 that the bpf switch uses, through ctypes, and libbpf's own log.

ctypes on the distribution's library, so nothing is compiled at run time and no package is needed.
Needs libbpf >= 1.1 (0.5 cannot parse a new kernel's BTF). `objects.py` and `maps.py` give them a shape.
"""
from __future__ import annotations

import collections
import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

from emulator.errors import MachineLacks

KERNEL_BTF = Path("/sys/kernel/btf/vmlinux")
_PRINT = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)
RECORD = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)
_LOG_BYTES, _TAIL_CHARACTERS = 1 << 24, 3000  # the verifier says what it minds at the end of its log
_log: collections.deque[str] = collections.deque(maxlen=40)


class OpenOptions(ctypes.Structure):
    """struct bpf_object_open_opts, its first fields."""

    _fields_ = [("sz", c_size_t), ("object_name", c_char_p)]


class TcHook(ctypes.Structure):
    """struct bpf_tc_hook."""

    _fields_ = [("sz", c_size_t), ("ifindex", c_int), ("attach_point", c_int), ("parent", c_uint32)]


class TcOptions(ctypes.Structure):
    """struct bpf_tc_opts."""

    _fields_ = [("sz", c_size_t), ("prog_fd", c_int), ("flags", c_uint32), ("prog_id", c_uint32),
                ("handle", c_uint32), ("priority", c_uint32)]


class TestRun(ctypes.Structure):
    """struct bpf_test_run_opts."""

    _fields_ = [("sz", c_size_t), ("data_in", c_void_p), ("data_out", c_void_p),
                ("data_size_in", c_uint32), ("data_size_out", c_uint32),
                ("ctx_in", c_void_p), ("ctx_out", c_void_p),
                ("ctx_size_in", c_uint32), ("ctx_size_out", c_uint32),
                ("retval", c_uint32), ("repeat", c_int), ("duration", c_uint32),
                ("flags", c_uint32), ("cpu", c_uint32), ("batch_size", c_uint32)]


_PROTOTYPES = {
    "libbpf_set_print": (c_void_p, _PRINT),
    "bpf_object__open_mem": (c_void_p, c_char_p, c_size_t, POINTER(OpenOptions)),
    "bpf_object__load": (c_int, c_void_p),
    "bpf_object__close": (None, c_void_p),
    "bpf_object__find_program_by_name": (c_void_p, c_void_p, c_char_p),
    "bpf_object__find_map_by_name": (c_void_p, c_void_p, c_char_p),
    "bpf_program__fd": (c_int, c_void_p),
    "bpf_program__attach": (c_void_p, c_void_p),
    "bpf_link__destroy": (c_int, c_void_p),
    "bpf_map__fd": (c_int, c_void_p),
    "bpf_map__reuse_fd": (c_int, c_void_p, c_int),
    "bpf_map__set_max_entries": (c_int, c_void_p, c_uint32),
    "bpf_map__set_map_flags": (c_int, c_void_p, c_uint32),
    "bpf_map__initial_value": (c_void_p, c_void_p, POINTER(c_size_t)),
    "bpf_map__attach_struct_ops": (c_void_p, c_void_p),
    "bpf_link_create": (c_int, c_int, c_int, c_int, c_void_p),
    "bpf_tc_hook_create": (c_int, POINTER(TcHook)),
    "bpf_tc_attach": (c_int, POINTER(TcHook), POINTER(TcOptions)),
    "bpf_xdp_attach": (c_int, c_int, c_int, c_uint32, c_void_p),
    "bpf_prog_get_fd_by_id": (c_int, c_uint32),
    "bpf_obj_get_info_by_fd": (c_int, c_int, c_void_p, POINTER(c_uint32)),
    "bpf_prog_test_run_opts": (c_int, c_int, POINTER(TestRun)),
    "bpf_map_create": (c_int, c_uint32, c_char_p, c_uint32, c_uint32, c_uint32, c_void_p),
    "bpf_map_update_elem": (c_int, c_int, c_void_p, c_void_p, c_uint64),
    "bpf_map_update_batch": (c_int, c_int, c_void_p, c_void_p, c_void_p, c_void_p),
    "bpf_map_delete_batch": (c_int, c_int, c_void_p, c_void_p, c_void_p),
    "bpf_map_get_fd_by_id": (c_int, c_uint32),
    "ring_buffer__new": (c_void_p, c_int, RECORD, c_void_p, c_void_p),
    "ring_buffer__free": (None, c_void_p),
    "ring_buffer__consume": (c_int, c_void_p),
    "ring_buffer__epoll_fd": (c_int, c_void_p),
}


@functools.cache
def library() -> ctypes.CDLL:
    """libbpf with its prototypes set; MachineLacks where it is missing or too old."""
    try:
        lib = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError:
        raise MachineLacks("libbpf.so.1 is missing: sudo apt install libbpf1 "
                           "(Ubuntu 22.04 has only 0.5: use --switch ovs there).") from None
    if (lib.libbpf_major_version(), lib.libbpf_minor_version()) < (1, 1):
        raise MachineLacks("libbpf is older than 1.1, too old for this kernel's BTF; use --switch ovs.")
    for name, (result, *arguments) in _PROTOTYPES.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    lib.libbpf_set_print(_keep_log)
    return lib


_vsnprintf = ctypes.CDLL(None).vsnprintf
_vsnprintf.argtypes = (c_char_p, c_size_t, c_char_p, c_void_p)


@_PRINT
def _keep_log(level: int, form: bytes, arguments: int) -> int:
    if level <= 1:  # LIBBPF_WARN, LIBBPF_INFO
        text = ctypes.create_string_buffer(_LOG_BYTES)
        _vsnprintf(text, len(text), form, arguments)
        _log.append(text.value.decode(errors="replace").rstrip()[-_TAIL_CHARACTERS:])
    return 0


def clear_log() -> None:
    """Forget what libbpf said so far, so that a failure shows only what belongs to it."""
    _log.clear()


def refused(what: str, code: int) -> MachineLacks:
    """The error for a refusal `code` (errno, either sign): a sentence and the end of libbpf's log."""
    tail = "\n".join(_log)
    return MachineLacks(f"{what}: {os.strerror(abs(code))}." + (f" libbpf says:\n{tail}" if tail else ""))


_BPF_MAP_TYPE_ARRAY = 2


def supported() -> str | None:
    """None where this machine can run the bpf switch, else the reason as a sentence."""
    if not KERNEL_BTF.exists():
        return f"this kernel has no {KERNEL_BTF} (CONFIG_DEBUG_INFO_BTF)."
    try:
        lib = library()
    except MachineLacks as reason:
        return str(reason)
    fd = lib.bpf_map_create(_BPF_MAP_TYPE_ARRAY, b"probe", 4, 8, 1, None)
    if fd < 0:
        return f"the kernel refuses BPF maps to this process ({os.strerror(-fd)}); it needs root."
    os.close(fd)
    return None
