"""Sandboxes by name. Unless one is named, the first of bubblewrap and namespaces that opens here; `none` is never chosen."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from kernelwright.errors import InfrastructureError, SandboxUnavailable, UsageError
from kernelwright.sandbox import Sandbox
from kernelwright.sandbox.bubblewrap import BubblewrapSandbox
from kernelwright.sandbox.container import ContainerSandbox
from kernelwright.sandbox.engines import ENGINES
from kernelwright.sandbox.namespaces import NamespacesSandbox
from kernelwright.sandbox.none import NoSandbox
from kernelwright.sandbox.refusals import why_not_started

BACKENDS: dict[str, Callable[[], Sandbox]] = {
    "bubblewrap": BubblewrapSandbox,
    "namespaces": NamespacesSandbox,
    "none": NoSandbox,
}
NAMES = ("auto", *BACKENDS, *ENGINES)


def open_sandbox(name: str = "auto", image: str | None = None) -> Sandbox:
    """With an image, `auto` is the first container engine that is installed. Raises SandboxUnavailable where its program is
    missing or, for `auto`, where no room opens."""
    if name not in NAMES:
        raise UsageError(f"there is no sandbox {name!r}", f"one of {', '.join(NAMES)}", "auto")
    if name in BACKENDS and image is not None:
        raise UsageError(
            f"{name} runs no image", "an image with podman, docker or apptainer", f"without --image {image}"
        )
    if name in ENGINES and image is None:
        raise UsageError(
            f"{name} needs an image", "one with the compilers that the task needs", f"--sandbox {name} --image NAME"
        )
    if image is not None:
        return ContainerSandbox(_installed_engine() if name == "auto" else name, image)
    return _first_that_opens() if name == "auto" else BACKENDS[name]()


def _installed_engine() -> str:
    return next((engine for engine in ENGINES if shutil.which(engine)), ENGINES[0])


def _first_that_opens() -> Sandbox:
    """Where neither opens, bubblewrap's reason is told, since a user can do most about it, with namespaces' words."""
    try:
        sandbox: BubblewrapSandbox | NamespacesSandbox = BubblewrapSandbox()
        said = sandbox.refusal()
        if said is None:
            return sandbox
        reason = why_not_started(said)
    except InfrastructureError as error:
        reason = error
    try:
        sandbox = NamespacesSandbox()
    except InfrastructureError:
        raise reason from None
    said = sandbox.refusal()
    if said is None:
        return sandbox
    if isinstance(reason, SandboxUnavailable):
        raise SandboxUnavailable(f"{reason.what}; nor do our own namespaces: {said}", reason.expected, reason.try_)
    raise reason
