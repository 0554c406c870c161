"""A build's own compile flags, made fit for the compiler that is here and for the architecture that is asked for."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

Have = Callable[[str], object]
"""Whether a program is installed, as `shutil.which` says."""

FOREIGN = re.compile(
    r"-f?i?q?openmp(?:=\w+)?|-fopenmp-targets=.*|-fopenmp-version=.*|-Xopenmp-target.*|-mp(?:=\w+)?|--offload-arch=.*|"
    r"-march=gfx\w+|-gpu=\w+|-D__STRICT_ANSI__|-qopt.*|-xHost|-fp-model.*|-ipo|-Minfo.*|-fast|-target|-cuda|-foffload.*|"
    r"-m(?:cpu|tune|arch)=(?:pwr|power)\w+"
)
"""What only a compiler for offloading knows, where g++ is taken instead."""
_CUDA_ARCH = re.compile(
    r"-{1,2}(?:arch|gpu-architecture)=\w+|-arch(?:=sm_\d+)?|-{1,2}(?:gencode|generate-code)(?:=\S+)?"
)
_CUDA_VALUE = re.compile(r"-arch|-{1,2}(?:gencode|generate-code)|-{1,2}(?:code|gpu-code)")
_HIP_ARCH = re.compile(r"--(?:offload-arch|amdgpu-target)=\w+(?::[\w+-]+)*")
ARCH_FLAGS = {"cuda": "-arch={arch}", "hip": "--offload-arch={arch}"}
_MPI = re.compile(r"-D\w*MPI\w*(?:=(?!0$)\w+)?|-l(?:mpi\w*|mpich\w*)|-[IL]\S*mpi\S*", re.I)
_NO_LIBRARY = {"m", "pthread", "dl", "rt", "stdc++", "c", "gcc", "cudart", "cuda", "gomp", "amdhip64", "ineinfo"}


def joined(words: Sequence[str]) -> str:
    """Words as a command line of a task file; placeholders in braces need no quotes there."""
    return " ".join(word if re.fullmatch(r"[\w@%+=:,./{}-]+", word) else shlex.quote(word) for word in words)


def words_of(text: str) -> list[str]:
    """The words of a flags variable; by white space alone where its quotes do not close."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def names_arch(words: Sequence[str], language: str) -> bool:
    """Whether the flags name the architecture of a GPU themselves."""
    pattern = {"cuda": _CUDA_ARCH, "hip": _HIP_ARCH}.get(language)
    return pattern is not None and any(pattern.fullmatch(word) for word in words)


def fitted(words: Sequence[str], language: str, mpi: bool) -> list[str]:
    """The flags without what only another compiler knows, nor folders that are not there, with `{arch}` for the
    architectures named; without MPI's where that is not here."""
    kept: list[str] = []
    left = iter(words)
    for word in left:
        if language == "cuda" and _CUDA_ARCH.fullmatch(word):
            if _CUDA_VALUE.fullmatch(word):
                next(left, None)
            word = ARCH_FLAGS[language]
        elif language == "hip" and _HIP_ARCH.fullmatch(word):
            word = ARCH_FLAGS[language]
        elif word in ("-ccbin", "--compiler-bindir", "-I", "-L", "-isystem"):
            value = next(left, "")
            kept += [word, value] if value and not _absent(value) else []
            continue
        elif language == "cpp" and FOREIGN.fullmatch(word):
            continue
        if (not mpi and _MPI.fullmatch(word)) or _absent(re.sub(r"^(?:-[IL]|-ccbin=)", "", word)):
            continue
        if not (word in ARCH_FLAGS.values() and word in kept):
            kept.append(word)
    return kept


def lacking(words: Sequence[str], mpi: bool) -> list[str]:
    """Those of the words that cannot be right on this machine: absolute paths that are not there, MPI where it is not."""
    return [word for word in words
            if _absent(re.sub(r"^(?:-[IL]|-ccbin=)", "", word)) or (not mpi and _MPI.fullmatch(word))]  # fmt: skip


def _absent(path: str) -> bool:
    """Whether an absolute path is not there, or is what is left of one whose variable says nothing."""
    return path in ("/include", "/lib", "/lib64") or (path.startswith("/") and not Path(path).exists())


def libraries(text: str) -> tuple[str, ...]:
    """The libraries that a build links (`-l`), without those that come with every compiler (and nvcc's -lineinfo)."""
    named = dict.fromkeys(re.findall(r"(?<!\S)-l([A-Za-z][\w+.-]*)", text))
    return tuple(name for name in named if name not in _NO_LIBRARY)
