"""The system calls that no job needs, as the bytes of a classic BPF filter for `bwrap --seccomp`.

The bytes are made here: the filter is a list of numbers and tests of a few arguments, and the packages that would make
it need libseccomp on the machine. What is refused gives EPERM, so that programs go on; clone3 hides its flags behind a
pointer and gives ENOSYS, on which the C library falls back to clone. Sockets are those of families that a network namespace
closes in: a virtual machine's line to its host (AF_VSOCK) has none, and the kernel's cryptography (AF_ALG) is no job's
business. Everything that CUDA uses (ioctl, mmap, memfd_create, mbind) stays, but for two ioctls that put words into a
terminal's mouth. Sources: linux/filter.h, linux/seccomp.h, and the kernel's system call tables.
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
SOCKET, SOCKETPAIR = {"x86_64": 41, "aarch64": 198}, {"x86_64": 53, "aarch64": 199}
FAMILIES = {"AF_UNSPEC": 0, "AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
IOCTL = {"x86_64": 16, "aarch64": 29}
TERMINAL_INPUT = {"TIOCSTI": 0x5412, "TIOCLINUX": 0x541C}

# fmt: off
REFUSED: dict[str, dict[str, int]] = {
    "x86_64": {
        "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "unshare": 272, "setns": 308,
        "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "kexec_load": 246, "kexec_file_load": 320, "init_module": 175, "finit_module": 313, "delete_module": 176,
        "reboot": 169, "swapon": 167, "swapoff": 168, "personality": 135, "open_by_handle_at": 304, "syslog": 103,
        "fanotify_init": 300, "modify_ldt": 154, "iopl": 172, "ioperm": 173, "acct": 163, "quotactl": 179,
    },
    "aarch64": {
        "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
        "mount": 40, "umount2": 39, "pivot_root": 41, "chroot": 51, "unshare": 97, "setns": 268,
        "add_key": 217, "request_key": 218, "keyctl": 219, "bpf": 280, "perf_event_open": 241, "userfaultfd": 282,
        "kexec_load": 104, "kexec_file_load": 294, "init_module": 105, "finit_module": 273, "delete_module": 106,
        "reboot": 142, "swapon": 224, "swapoff": 225, "personality": 92, "open_by_handle_at": 265, "syslog": 116,
        "fanotify_init": 262, "acct": 89, "quotactl": 60,
    },
}
REFUSED_EVERYWHERE = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429,
    "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "process_madvise": 440,
    "mount_setattr": 442,
}
# fmt: on

_LOAD, _JUMP_EQUAL, _JUMP_GREATER_EQUAL, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
"""Offsets into struct seccomp_data; an argument's low word comes first on both little-endian machines."""
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE = _ERRNO | errno.EPERM


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _when(test: int, value: int, action: int) -> bytes:
    """Return `action` where the test holds, else go on."""
    return _step(test, value, 0, 1) + _step(_RETURN, action)


def _about(call: int, argument: int, tests: bytes) -> bytes:
    """`tests` of an argument of one system call; where none of them decides, the call is allowed."""
    decided = _step(_LOAD, argument) + tests + _step(_RETURN, _ALLOW)
    return _step(_JUMP_EQUAL, call, 0, len(decided) // 8) + decided


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
    steps += [_when(_JUMP_EQUAL, number, _REFUSE) for number in sorted(refused.values())]
    steps.append(_when(_JUMP_EQUAL, CLONE3, _ERRNO | errno.ENOSYS))
    steps.append(_about(CLONE[machine], _FIRST_ARGUMENT, _when(_JUMP_ANY_BIT, CLONE_NEWUSER, _REFUSE)))
    for call in (SOCKET[machine], SOCKETPAIR[machine]):
        families = [_when(_JUMP_EQUAL, family, _ALLOW) for family in FAMILIES.values()]
        steps.append(_about(call, _FIRST_ARGUMENT, b"".join(families) + _step(_RETURN, _ERRNO | errno.EAFNOSUPPORT)))
    words = [_when(_JUMP_EQUAL, request, _REFUSE) for request in TERMINAL_INPUT.values()]
    steps += [_about(IOCTL[machine], _SECOND_ARGUMENT, b"".join(words)), _step(_RETURN, _ALLOW)]
    return b"".join(steps)
