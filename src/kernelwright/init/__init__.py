"""`kernelwright init`: a first task file for a repository, by reading its Makefile, its run target and what it prints.

`draft` reads, `settle` corrects by a real run, `render` writes. `hot` profiles a run and proposes regions. What runs here
runs through a callable that the caller gives: the sandbox.
"""

from kernelwright.init.draft import TaskDraft, adapt, draft, settle
from kernelwright.init.render import render

__all__ = ["TaskDraft", "adapt", "draft", "render", "settle"]
