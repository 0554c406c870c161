"""The system calls that no job needs, as the bytes of a classic BPF filter for `bwrap --seccomp`.

The bytes are made here: the filter is a list of numbers and one test of clone's flags, and the packages that would make
it need libseccomp on the machine. What is refused gives EPERM, so that programs go on; clone3 hides its flags behind a
pointer and gives ENOSYS, on which the C library falls back to clone. Everything that CUDA uses (ioctl, mmap,
memfd_create, mbind) stays. Sources: linux/filter.h, linux/seccomp.h, and the kernel's system call tables.
"""

from __future__ import annotations

import errno
import platform
import struct

AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000
CLONE_NEWUSER = 0x10000000
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435

# fmt: off
REFUSED: dict[str, dict[str, int]] = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
        "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
        "reboot": 169, "swapon": 167, "swapoff": 168, "personality": 135, "open_by_handle_at": 304,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268,
        "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106,
        "reboot": 142, "swapon": 224, "swapoff": 225, "personality": 92, "open_by_handle_at": 265,
    },
}
REFUSED_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442,
}
# fmt: on

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets into struct seccomp_data; the first argument's low word comes first on both little-endian machines."""
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when(test: int, value: int, action: int) -> bytes:
    """Return `action` where the test holds, else go on."""
    return _step(test, value, 0, 1) + _step(_RETURN, action)


def seccomp_filter(machine: str | None = None) -> bytes | None:
    """The filter for a machine (`platform.machine()` by default); None where its system call table is not known here."""
    machine = machine or platform.machine()
    if machine not in REFUSED:
        return None
    refused = REFUSED[machine] | REFUSED_EVERYWHERE
    steps = [_step(_LOAD, _ARCH), _step(_JUMP_EQUAL, AUDIT_ARCH[machine], 1, 0), _step(_RETURN, _KILL_PROCESS)]
    steps.append(_step(_LOAD, _NUMBER))
    if machine == "x86_64":
        steps.append(_when(_JUMP_GREATER_EQUAL, X32_BIT, _KILL_PROCESS))
    steps += [_when(_JUMP_EQUAL, number, _ERRNO | errno.EPERM) for number in sorted(refused.values())]
    steps.append(_when(_JUMP_EQUAL, CLONE3, _ERRNO | errno.ENOSYS))
    steps += [_step(_JUMP_EQUAL, CLONE[machine], 1, 0), _step(_RETURN, _ALLOW), _step(_LOAD, _FIRST_ARGUMENT)]
    steps += [_when(_JUMP_ANY_BIT, CLONE_NEWUSER, _ERRNO | errno.EPERM), _step(_RETURN, _ALLOW)]
    return b"".join(steps)
