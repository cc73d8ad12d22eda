"""Compile the BPF programs, and the relay of `--delay`, at install time: `python -m emulator.asic.build`.

clang turns each bpf/NAME.bpf.c into bpf/build/NAME.bpf.o against a vmlinux.h that bpftool writes from
this kernel's BTF. The objects are CO-RE (compile once, run everywhere): libbpf relocates them when
they are loaded, so they also load on another kernel (6.1 and later), and a run compiles nothing.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from emulator.delay import build as relay
from emulator.asic.libbpf import KERNEL_BTF
from emulator.errors import EmulatorError, MachineLacks

SOURCES = Path(__file__).parent / "bpf"
OBJECTS = SOURCES / "build"
# -g keeps the BTF that CO-RE lives on; v3 is the first instruction set with atomic fetch-and-add.
CLANG_FLAGS = ("-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-O2", "-g", "-Wall", "-Werror",
               "-Wno-missing-declarations")
_SBIN = "/usr/sbin:/sbin"
_COMMAND_TIMEOUT_S = 120


def sources() -> list[Path]:
    """The programs to compile; the headers beside them are included by them."""
    return sorted(SOURCES.glob("*.bpf.c"))


def object_path(name: str) -> Path:
    """Where the compiled `name`.bpf.c lies."""
    return OBJECTS / f"{name}.bpf.o"


def missing_objects() -> list[str]:
    """Names of programs that are not compiled, or are older than their sources."""
    newest = max(path.stat().st_mtime for path in SOURCES.glob("*.[ch]"))
    names = [path.name.removesuffix(".bpf.c") for path in sources()]
    return [name for name in names
            if not object_path(name).exists() or object_path(name).stat().st_mtime < newest]


def tool(names: tuple[str, ...], package: str) -> str:
    """Path of the first of `names` on this machine; MachineLacks names the Debian package."""
    path = os.environ.get("PATH", "") + ":" + _SBIN
    for name in names:
        found = shutil.which(name, path=path)
        if found:
            return found
    raise MachineLacks(f"{names[0]} is missing; it compiles the bpf switch: sudo apt install {package}.")


def _run(argv: list[str], **options) -> None:
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, timeout=_COMMAND_TIMEOUT_S, check=False,
                          **options)
    if done.returncode:
        raise EmulatorError(f"{' '.join(argv)} failed with status {done.returncode}:\n{done.stderr[-3000:]}")


def _write_vmlinux(folder: Path) -> None:
    """Dump the kernel's types into folder/vmlinux.h, unless an earlier build already did."""
    header = folder / "vmlinux.h"
    if header.exists():
        return
    if not KERNEL_BTF.exists():
        raise MachineLacks(f"this kernel has no {KERNEL_BTF} (CONFIG_DEBUG_INFO_BTF); use --switch ovs.")
    partial = header.with_suffix(".partial")
    with partial.open("w") as out:
        _run([tool(("bpftool",), "bpftool"), "btf", "dump", "file", str(KERNEL_BTF), "format", "c"],
             stdout=out)
    partial.rename(header)


def build() -> list[Path]:
    """Compile what is missing or stale; returns the paths of the objects that were made."""
    stale = missing_objects()
    if not stale:
        return []
    clang = tool(("clang", "clang-14", "clang-15", "clang-16", "clang-17", "clang-18", "clang-19"), "clang")
    strip = tool(("llvm-strip", "llvm-strip-14", "llvm-strip-15", "llvm-strip-16", "llvm-strip-17",
                  "llvm-strip-18", "llvm-strip-19"), "llvm")
    OBJECTS.mkdir(exist_ok=True)
    _write_vmlinux(OBJECTS)
    made = []
    for name in stale:
        target = object_path(name)
        partial = target.with_suffix(".partial")
        _run([clang, *CLANG_FLAGS, f"-I{OBJECTS}", f"-I{SOURCES}", "-c",
              str(SOURCES / f"{name}.bpf.c"), "-o", str(partial)])
        _run([strip, "-g", str(partial)])  # drops DWARF, keeps BTF
        partial.rename(target)
        made.append(target)
    _give_back()
    return made


def _give_back() -> None:
    """What root built in a user's clone belongs to the user."""
    if os.geteuid():
        return
    owner = SOURCES.stat()
    for path in (OBJECTS, *OBJECTS.iterdir()):
        os.chown(path, owner.st_uid, owner.st_gid)


def main() -> int:
    """Compile; print one line an object, or one sentence on what is missing."""
    made: list[Path] = []
    status = 0
    for compile_all in (relay.build, build):  # the relay first: it needs no BTF
        try:
            made += compile_all()
        except EmulatorError as error:
            print(error, file=sys.stderr)
            status = error.exit_status
    for path in made:
        print(f"built {path}")
    if not made and not status:
        print("the relay and the BPF objects are up to date")
    return status


if __name__ == "__main__":
    sys.exit(main())
