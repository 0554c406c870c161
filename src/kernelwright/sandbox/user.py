"""Who a job is: as root a user of its own, else ourselves."""

from __future__ import annotations

import os
from pathlib import Path

JOB_UID = 60_999
"""The user (and group) that jobs are when we are root. Systemd's and Debian's tables leave 60706 to 61183 to nobody, and
containers that map a single range of ids have only those below 65536."""


def job_uid() -> int | None:
    """The user that jobs become; None where they stay who we are."""
    return JOB_UID if os.geteuid() == 0 else None


def own(folder: Path) -> None:
    """Give `folder` and all below it to the job's user, where that is not us. Links are given, never followed."""
    if (uid := job_uid()) is None:
        return
    os.chown(folder, uid, uid, follow_symlinks=False)
    for _, folders, files, here in os.fwalk(folder):
        for name in (*folders, *files):
            os.chown(name, uid, uid, dir_fd=here, follow_symlinks=False)
