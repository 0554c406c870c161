"""`kernelwright init`: a first task file for a repository, by reading its Makefile, its run target and what it prints.

`draft` reads, `adapt` corrects by a real run, `render` writes; `running` has what is run for that, and `hot` reads the
profile from which regions are proposed.
"""

from kernelwright.init.draft import TaskDraft, adapt, draft
from kernelwright.init.render import render

__all__ = ["TaskDraft", "adapt", "draft", "render"]
