"""Why a room does not open, and what to do: the machine forbids it, or this one job was lost."""

from __future__ import annotations

import re
from pathlib import Path

from kernelwright.errors import InfrastructureError, JobFault, SandboxUnavailable

WITHOUT = "or pass --no-sandbox, which runs jobs with all your rights and is recorded with every result"
FORBIDDEN = re.compile(r"namespace|uid.map|of its own|private mounts|Operation not permitted")
"""What bubblewrap, stage.c or namespaces.c say where the machine's settings are the reason, in versions that were seen."""
_SETTINGS = Path("/proc/sys")


def _is(setting: str, value: str) -> bool:
    path = _SETTINGS / setting
    return path.exists() and path.read_text().strip() == value


def advice(said: str) -> str:
    """What a user can do about the words of a room that this machine forbids."""
    if said.startswith("stage:"):
        return f"root in this container may not mount: run as a plain user, give it CAP_SYS_ADMIN, {WITHOUT}"
    if "/proc" in said:
        return (
            "a container that covers parts of /proc forbids a new one: start it with docker's "
            f"`--security-opt systempaths=unconfined` or podman's `--security-opt unmask=ALL`, {WITHOUT}"
        )
    if _is("kernel/apparmor_restrict_unprivileged_userns", "1"):
        return (
            "Ubuntu's AppArmor forbids user namespaces: install an AppArmor profile that lets /usr/bin/bwrap use `userns`, "
            f"or `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, {WITHOUT}"
        )
    if _is("kernel/unprivileged_userns_clone", "0"):
        return f"`sudo sysctl -w kernel.unprivileged_userns_clone=1`, {WITHOUT}"
    if _is("user/max_user_namespaces", "0"):
        return f"`sudo sysctl -w user.max_user_namespaces=10000`, {WITHOUT}"
    return f"ask whoever runs this machine (or its container runtime) to allow user namespaces, {WITHOUT}"


def why_not_started(said: str) -> InfrastructureError:
    """The exception for what was said instead of starting the program: forbidden here, or this job was lost."""
    words = said or "the sandbox ended without a word"
    if "No space left" in said and "of its own" not in said:  # too many namespaces are told in the same words
        return JobFault(f"a job did not start: {words}", "room on the machine's disk", "free some space and resume")
    if FORBIDDEN.search(said):
        return SandboxUnavailable(f"the sandbox does not open here: {words}", "user namespaces", advice(said))
    return JobFault(f"a job did not start: {words}", "the sandbox to start the program", "kernelwright doctor")
