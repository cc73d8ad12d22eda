"""Loaded BPF objects: their programs attached, their maps shared, their struct_ops registered.

Failures are MachineLacks with a sentence and the end of libbpf's log, where the verifier says what it
minds.
"""
from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Mapping
from ctypes import byref, c_size_t, c_uint32, c_void_p
from pathlib import Path

from emulator.asic.libbpf import OpenOptions, TcHook, TcOptions, TestRun, clear_log, library, refused
from emulator.asic.maps import Map
from emulator.errors import EmulatorError, MachineLacks

INGRESS, EGRESS = 1, 2  # enum bpf_tc_attach_point
_TC_REPLACE = 1
_XDP_DRIVER_MODE = 1 << 2
_BPF_F_LINK = 1 << 13
_BPF_STRUCT_OPS = 44  # enum bpf_attach_type


class Link:
    """An attachment that ends when it is closed or its process dies."""

    def __init__(self, pointer: int | None, fd: int = -1) -> None:
        self._pointer, self._fd = pointer, fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
        elif self._pointer:
            library().bpf_link__destroy(self._pointer)
        self._pointer, self._fd = None, -1


class Object:
    """A loaded object: its programs are in the kernel until it is closed and nothing holds them.

    image: the bytes of the .bpf.o (a caller may have changed a name in them). settings: what the
    constant section .rodata holds, which the verifier uses to drop dead branches. reuse: maps of
    other objects that take the place of this object's maps of the same name. max_entries: sizes of
    its own maps. linked_struct_ops: the struct_ops map that a link will hold (kernel >= 6.4).
    """

    def __init__(self, name: str, image: bytes, *, settings: bytes | None = None,
                 reuse: Mapping[str, Map] | None = None, max_entries: Mapping[str, int] | None = None,
                 linked_struct_ops: str | None = None) -> None:
        lib = library()
        clear_log()
        self._links: list[Link] = []
        options = OpenOptions(ctypes.sizeof(OpenOptions), name.encode())
        self._pointer = lib.bpf_object__open_mem(image, len(image), byref(options))
        if not self._pointer:
            raise refused(f"the BPF object {name} cannot be opened", ctypes.get_errno())
        self.name = name
        for map_name, size in (max_entries or {}).items():
            lib.bpf_map__set_max_entries(self._find("map", map_name), size)
        for map_name, shared in (reuse or {}).items():
            found = lib.bpf_object__find_map_by_name(self._pointer, map_name.encode())
            if found and lib.bpf_map__reuse_fd(found, shared.fd):
                raise refused(f"the BPF object {name} cannot share the map {map_name}", ctypes.get_errno())
        if linked_struct_ops:
            lib.bpf_map__set_map_flags(self._find("map", linked_struct_ops), _BPF_F_LINK)
        if settings is not None:
            self._set_rodata(settings)
        status = lib.bpf_object__load(self._pointer)
        if status:
            failure = refused(f"this kernel refuses the BPF object {name}", status)
            self.close()
            raise failure

    def _find(self, kind: str, name: str) -> int:
        find = getattr(library(), f"bpf_object__find_{kind}_by_name")
        found = find(self._pointer, name.encode())
        if not found:
            raise EmulatorError(f"the BPF object {self.name} has no {kind} {name}.")
        return found

    def _set_rodata(self, settings: bytes) -> None:
        size = c_size_t()
        memory = library().bpf_map__initial_value(self._find("map", ".rodata"), byref(size))
        if size.value != len(settings):
            raise EmulatorError(f"the settings of {self.name} are {size.value} bytes in C and "
                                f"{len(settings)} in Python; rebuild with python -m emulator.asic.build.")
        ctypes.memmove(memory, settings, len(settings))

    def map(self, name: str) -> Map:
        """The map `name`, valid as long as the object is open."""
        return Map(name, library().bpf_map__fd(self._find("map", name)))

    def program(self, name: str) -> int:
        """The file descriptor of program `name`, owned by the object."""
        return library().bpf_program__fd(self._find("program", name))

    def attach(self, name: str) -> None:
        """Attach a tracing program by its section name; it stays until the object is closed."""
        pointer = library().bpf_program__attach(self._find("program", name))
        if not pointer:
            raise refused(f"the BPF program {name} cannot be attached", ctypes.get_errno())
        self._links.append(Link(pointer))

    def register_struct_ops(self, name: str, linked: bool) -> None:
        """Register the struct_ops map `name`.

        linked (it was opened as linked_struct_ops): by a link that dies with this process; else until
        `close`, and for good if this process is killed.
        """
        lib = library()
        described = self._find("map", name)
        pointer = lib.bpf_map__attach_struct_ops(described)  # a map for a link is only filled in by this
        if not pointer:
            raise refused(f"this kernel refuses the struct_ops {name}", ctypes.get_errno())
        if not linked:
            self._links.append(Link(pointer))
            return
        fd = lib.bpf_link_create(lib.bpf_map__fd(described), 0, _BPF_STRUCT_OPS, None)
        if fd < 0:
            raise refused(f"the struct_ops {name} cannot be linked", fd)
        self._links.append(Link(None, fd))

    def close(self) -> None:
        """Detach what was attached and let go of programs and maps."""
        for link in self._links:
            link.close()
        self._links.clear()
        if self._pointer:
            library().bpf_object__close(self._pointer)
            self._pointer = None


def open_object(path: Path, **options) -> Object:
    """Load the object in `path`; MachineLacks where it was not built."""
    try:
        image = path.read_bytes()
    except FileNotFoundError:
        raise MachineLacks(f"{path} is not built: python -m emulator.asic.build.") from None
    return Object(path.name.removesuffix(".bpf.o"), image, **options)


def tc_hook(ifindex: int) -> None:
    """Give an interface its clsact qdisc, if it has none.

    Make the hooks of all ports before the first `tc_attach`: a hook takes its first program at once only
    when an RCU grace period has passed since it was made (mini_qdisc_pair_swap, net/sched/sch_generic.c).
    """
    hook = TcHook(ctypes.sizeof(TcHook), ifindex, INGRESS | EGRESS, 0)
    status = library().bpf_tc_hook_create(byref(hook))
    if status and status != -errno.EEXIST:
        raise refused(f"interface {ifindex} takes no clsact qdisc", status)


def tc_attach(ifindex: int, program_fd: int, where: int) -> None:
    """Put a program on INGRESS or EGRESS of an interface that has its hook, replacing ours."""
    hook = TcHook(ctypes.sizeof(TcHook), ifindex, where, 0)
    options = TcOptions(ctypes.sizeof(TcOptions), program_fd, _TC_REPLACE, 0, 1, 1)
    status = library().bpf_tc_attach(byref(hook), byref(options))
    if status:
        raise refused(f"interface {ifindex} takes no BPF program", status)


def xdp_attach(ifindex: int, program_fd: int) -> None:
    """Put an XDP program on an interface of this namespace, in its driver."""
    status = library().bpf_xdp_attach(ifindex, program_fd, _XDP_DRIVER_MODE, None)
    if status:
        raise refused(f"interface {ifindex} takes no XDP program", status)


def program_id(fd: int) -> int:
    """The kernel-wide number of a program, by which another process can open it."""
    info = (c_uint32 * 64)()
    size = c_uint32(ctypes.sizeof(info))
    status = library().bpf_obj_get_info_by_fd(fd, info, byref(size))
    if status:
        raise refused(f"program {fd} gives no information", status)
    return info[1]


def open_program(number: int) -> int:
    """A file descriptor of the program with kernel-wide number `number`."""
    fd = library().bpf_prog_get_fd_by_id(number)
    if fd < 0:
        raise refused(f"there is no BPF program {number} any more", fd)
    return fd


_MARK_OFFSET, _PRIORITY_OFFSET, _IFINDEX_OFFSET = 8, 32, 40  # in struct __sk_buff, linux/bpf.h


def test_run(program_fd: int, frame: bytes, ifindex: int, priority: int = 0, repeat: int = 1,
             mark: int = 0) -> tuple[int, float]:
    """Run a tc program on `frame` as if interface `ifindex` of this namespace had it.

    Returns what the program returns (32 bits, unsigned) and the mean time of one run in seconds. The
    kernel discards the packet afterwards, unless the program sent it on (BPF_PROG_TEST_RUN; frames of
    some 3.5 kB at the most, and they belong to a socket).
    """
    context = bytearray(_IFINDEX_OFFSET + 4)
    context[_MARK_OFFSET:_MARK_OFFSET + 4] = mark.to_bytes(4, "little")
    context[_PRIORITY_OFFSET:_PRIORITY_OFFSET + 4] = priority.to_bytes(4, "little")
    context[_IFINDEX_OFFSET:] = ifindex.to_bytes(4, "little")
    memory = (ctypes.c_char * len(context)).from_buffer(context)
    options = TestRun(ctypes.sizeof(TestRun), ctypes.cast(frame, c_void_p), None, len(frame), 0,
                       ctypes.addressof(memory), None, len(context), 0, 0, repeat)
    status = library().bpf_prog_test_run_opts(program_fd, byref(options))
    if status:
        raise refused(f"the BPF program cannot be run for interface {ifindex}", status)
    return options.retval, options.duration * 1e-9
