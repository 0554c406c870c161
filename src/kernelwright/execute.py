"""Build and run candidates of one task, in the sandbox, from a pristine copy that nobody else writes.

Tools and the verifier share this code and no state: each opens a `Workshop` of its own. A workshop holds the pristine
copy, the interposed compilers and a few slots; a slot is one workspace, reused for candidate after candidate and restored
byte for byte in between, also between the runs of one candidate, so that nothing written by a run helps the next one.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from kernelwright import build_cache, interpose, mishaps
from kernelwright.approval import Approval, candidate_piece
from kernelwright.build_cache import KeptBuild
from kernelwright.checks import RunResult, files_of
from kernelwright.commands import compiler_environment, tool_path, visible_devices, words
from kernelwright.errors import CandidateError, InfrastructureError, JobFault, JobLost, KernelwrightError, TaskError
from kernelwright.interpose import Plan, Recorded
from kernelwright.kernels import KernelTiming, Recorder
from kernelwright.outcome import Outcome
from kernelwright.sandbox import Bind, Job, JobResult, LimitHit, Limits, Sandbox
from kernelwright.sandbox.outputs import drop_output, read_output
from kernelwright.slots import any_core, slot
from kernelwright.source import Span, region_spans, splice
from kernelwright.task import Run, Task
from kernelwright.toolchain import kernel_time
from kernelwright.toolchain.devices import default_arch, visible_gpus
from kernelwright.trace import Candidate
from kernelwright.workspace import (
    Snapshot,
    WorkFolder,
    copy_repository,
    populate,
    restore,
    rewritten,
    snapshot,
    to_its_end,
)

REPO = interpose.REPO
OUTPUT_FILE_LIMIT = 256 * 2**20
"""The largest output file that is read for a check, in bytes."""


@dataclass(frozen=True)
class BuildFailure:
    """A candidate that did not become a program: an outcome, not an exception."""

    outcome: Outcome
    log: str
    doubtful: bool = False
    """Whether the machine may have failed instead (mishaps.py)."""
    limit: bool = False
    """Whether it passed a limit, which another task file or machine may not have."""


@dataclass
class Built:
    """A built program in its slot. `snapshot` is what each run starts from."""

    slot: Slot
    snapshot: Snapshot
    log: str
    commands: tuple[Recorded, ...]
    artifact: str
    """SHA-256 of the built program."""
    build_s: float
    regions: Mapping[str, str]
    """The text of each region in this program."""
    lost: int = 0
    """How many of its runs ended as if from outside."""


@dataclass
class Slot:
    """One workspace folder and what it was last restored to."""

    name: str
    folder: Path
    start: Snapshot
    """The unbuilt (but configured) repository, signed for this folder."""
    configured: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Workshop:
    """Everything that builds and runs of one task need; an async context manager."""

    def __init__(
        self,
        task: Task,
        sandbox: Sandbox,
        keep: bool = False,
        approval: Approval | None = None,
        device: int | None = None,
    ) -> None:
        """`device` is the accelerator that runs use, where it is not the first visible one."""
        self.task = task
        self.sandbox = sandbox
        self.approval = approval
        self._device = device
        self.arch = task.build.arch or default_arch(task.language)
        self.notes: list[str] = []
        self.keep = keep
        self._slots: dict[str, Slot] = {}
        self.plan = Plan()
        self._unchanged: set[str] = set()
        self._built_once = False
        self._hashed: tuple[Snapshot, str] | None = None
        self.beside: list[Bind] = []
        """What every run sees beside the repository."""

    async def __aenter__(self) -> Workshop:
        self._work = WorkFolder()
        try:
            if self.keep:
                self._work.hold()
            self.folder = self._work.path
            self.pristine = self.folder / "pristine"
            self._start = await to_its_end(copy_repository, self.task, self.pristine)
            self.spans = region_spans(self.task, self.pristine)
            interpose.install(self.folder / "compilers")
            self._no_plan = self.folder / "no-plan"
            self._no_plan.mkdir()
            self._plan_folder = self._no_plan
            self._compilers = mishaps.compilers()
        except BaseException:
            self._work.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await to_its_end(self._work.close)

    async def _configure(self, slot: Slot) -> None:
        """Once for all slots; where each lies elsewhere (no sandbox) in each anew, since CMake writes whole paths down."""
        if self.task.build.configure is None or slot.configured:
            return
        for left in reversed(range(mishaps.TRIES)):
            slot.start = await to_its_end(restore, slot.folder, slot.start, self.sandbox.own)
            result, _ = await self._compile(slot, self.task.build.configure, ())
            if not left or not mishaps.kills_inside((result.stdout + result.stderr).decode(errors="replace")):
                break
        if result.exit_code != 0:
            log = (result.stdout + result.stderr).decode(errors="replace")
            broken = "build.configure fails on the unmodified code"
            raise _baseline_broken(self.task, broken, self.task.build.configure, log)
        slot.start = await to_its_end(snapshot, slot.folder, slot.start, self.folder / f"{slot.name}-configured")
        slot.configured = True
        if self.same_place:
            self._start = slot.start

    @property
    def same_place(self) -> bool:
        """Whether every build sees the repository at the same path (without a sandbox each slot lies elsewhere)."""
        return self.sandbox.inside(self.folder, REPO) == REPO

    async def run_job(self, job: Job) -> JobResult:
        """Run a job that may be made again where it was lost or ended from outside: what it writes, it writes anew."""
        for left in reversed(range(mishaps.TRIES)):
            try:
                result = await self._spawn(job)
            except JobLost:
                if not left:
                    raise
                continue
            killed = mishaps.from_outside(result) or mishaps.kills_inside(result.stderr.decode(errors="replace"))
            if result.exit_code == 0 or not left or not killed:
                break
        if result.exit_code != 0:
            mishaps.require_same(self._compilers)
        return result

    async def _spawn(self, job: Job) -> JobResult:
        """Everything that is spawned goes through here, and holds the device or a core meanwhile; the user's repository
        itself is not even visible inside."""
        # A job must meet its own limit before the machine runs out of memory, which would look like the machine's fault.
        limits = replace(job.limits, memory_bytes=min(job.limits.memory_bytes, int(0.9 * machine_memory())))
        needed = slot("gpu", (self.device,)) if job.gpu and self.device is not None else any_core()
        async with needed:
            return await self.sandbox.run(replace(job, limits=limits, unseen=(self.task.root, self.task.path.parent)))

    def _slot(self, name: str) -> Slot:
        if name not in self._slots:
            folder = self.folder / name
            configured = self.same_place and any(slot.configured for slot in self._slots.values())
            self._slots[name] = Slot(
                name, folder, populate(folder, self._start, self.sandbox.own), configured=configured
            )
        return self._slots[name]

    async def build_baseline(self) -> Built:
        """Build the unmodified code, and make the plan by which candidates' builds reuse its objects.

        Raises TaskError where the user's own code does not build.
        """
        built = await self._learn()
        if not self.plan.sees_regions:
            await self._require_compiled()
            self.notes.append(
                f"the interposed compilers saw no command that reads {', '.join(self.plan.unseen)}: every build is a full "
                "clean one, and compile arguments go where the build command has {flags}"
            )
            return built
        if shared := self.plan.shared_with(self.region_files):
            self.notes.append(
                f"one command compiles a region together with {', '.join(shared)}: a candidate's compile "
                "arguments reach those files too"
            )
        await to_its_end(self._lay_out_plan)
        if self.task.build.flags and "{flags}" not in self.task.build.command:
            again = await self._build(built.slot, {}, ())
            if isinstance(again, BuildFailure):
                raise TaskError(
                    f"{self.task.path}: with build.flags the code does not build: {_tail(again.log)}",
                    "flags that the compiler takes",
                    "the build by hand with these flags",
                )
            return again
        return built

    async def _learn(self) -> Built:
        """Build the original with nothing reused, and make the plan from what the compilers were seen to do."""
        self._plan_folder = self._no_plan
        built = await self._build(self._slot("baseline"), {}, (), depends=True)
        if isinstance(built, BuildFailure):
            raise _baseline_broken(self.task, "the unmodified code does not build", self.task.build.command, built.log)
        changed = await to_its_end(rewritten, built.slot.folder, built.slot.start)
        self._unchanged = self._start.files() - changed
        self.plan = interpose.make_plan(built.commands, self.region_files, self._unchanged, self.same_place)
        return built

    async def _require_compiled(self) -> None:
        """Without sight of the compilers: regions that are no code must not build, else something stale is run."""
        broken = await self._build(
            self._slot("candidate"), {name: "@ " + span.text for name, span in self.spans.items()}, ()
        )
        if not isinstance(broken, BuildFailure):
            raise TaskError(
                f"{self.task.path}: the build succeeds with a syntax error in every region: {', '.join(self.plan.unseen)} is "
                "not what gets compiled",
                "a build that compiles the regions' files",
                "make -B, or a clean target first",
            )

    def _lay_out_plan(self) -> None:
        record = self.folder / "baseline-record"
        kept = {name: read_output(record, name, OUTPUT_FILE_LIMIT) for c in self.plan.reuse for name in c.kept}
        objects = {name: data for name, data in kept.items() if data is not None}
        self._plan_folder = self.folder / "plan"
        shutil.rmtree(self._plan_folder, ignore_errors=True)
        interpose.write_plan(self.plan, self._plan_folder, self.region_files, objects)

    def _forgo_reuse(self, files: Sequence[str]) -> None:
        """From now on every build compiles all of its commands."""
        self.notes.append(
            f"the build of a candidate rewrote {', '.join(files)}, which the original's build had left alone: nothing is "
            "reused from the original's build any more"
        )
        self.plan = self.plan.whole
        self._lay_out_plan()

    async def build(self, candidate: Candidate, slot_name: str = "candidate") -> Built | BuildFailure:
        """Splice the candidate into a restored slot and build it. Raises CandidateError for a region that the task does
        not have, or compile arguments that cannot be placed."""
        unknown = sorted(set(candidate.code) - set(self.spans))
        if unknown:
            raise CandidateError(
                f"the task has no region {unknown[0]!r}", f"one of {', '.join(self.spans)}", "the region's name"
            )
        if candidate.compile_args and not self.places_arguments:
            raise CandidateError(
                "compile arguments cannot be placed: the build's compilers are not seen, and its command "
                "has no {flags}",
                "a build command with {flags}",
                "{flags} in build.command, where its compile arguments stand",
            )
        return await self._build(self._slot(slot_name), candidate.code, candidate.compile_args)

    def replace_pristine(self, files: Mapping[str, bytes], spans: Mapping[str, Span]) -> None:
        """Other content of files of the pristine copy, where the regions now lie; every slot starts again from it."""
        for file, data in files.items():
            (self.pristine / file).write_bytes(data)
        self.spans = dict(spans)
        self._start = snapshot(self.pristine, None, self.pristine)
        for name in list(self._slots):
            shutil.rmtree(self._slots.pop(name).folder)

    @asynccontextmanager
    async def spliced_slot(self, candidate: Candidate) -> AsyncIterator[Slot]:
        """A slot of its own with the candidate's text in it, not built unless a region's units read what a build makes."""
        slot = self._slot("analysis")
        async with slot.lock:
            slot.start = await to_its_end(restore, slot.folder, slot.start, self.sandbox.own)
            if any(not set(command.depends) <= self._unchanged for command in self.plan.append):
                await self._build(slot, candidate.code, candidate.compile_args)
            else:
                self._splice(slot, candidate.code)
            yield slot

    async def not_approved(self, candidate: Candidate, purpose: str) -> str | None:
        """Why a person does not want the candidate compiled or run; None where nobody asked to decide that."""
        if self.approval is None or candidate.is_original:
            return None
        after = self.spliced(candidate.code)
        before = {file: (self.pristine / file).read_bytes() for file in after}
        return await self.approval(candidate_piece(candidate, before, after), purpose)

    def spliced(self, code: Mapping[str, str]) -> dict[str, bytes]:
        """The whole files that a candidate would give: repository path → bytes. Nothing is written."""
        files: dict[str, bytes] = {}
        for file in {span.file for span in self.spans.values()}:
            here = {span: code[name] for name, span in self.spans.items() if span.file == file and name in code}
            files[file] = splice((self.pristine / file).read_bytes(), here)
        return files

    def _splice(self, slot: Slot, code: Mapping[str, str]) -> None:
        for file, data in self.spliced(code).items():
            if data != (self.pristine / file).read_bytes():
                (slot.folder / file).write_bytes(data)

    def read_beside(self, file: str) -> list[bytes]:
        """The other files of the repository that the translation units with `file` in them read."""
        others = {path for command in self.plan.append if file in command.depends for path in command.depends} - {file}
        return [(self.pristine / path).read_bytes() for path in sorted(others) if (self.pristine / path).is_file()]

    async def _build(
        self, slot: Slot, code: Mapping[str, str], arguments: Sequence[str], depends: bool = False
    ) -> Built | BuildFailure:
        """Build until it succeeds or its failure is certain, unless this very build was made before. Raises
        InfrastructureError where the machine failed."""
        await self._configure(slot)
        key = None if depends else await to_its_end(self._build_key, code, arguments)
        mishaps.require_same(self._compilers)
        if key is not None and (known := await self._made_before(slot, key, code)) is not None:
            return known
        made = await self._build_anew(slot, code, arguments, depends)
        if key is not None and key == self._build_key(code, arguments):
            await to_its_end(self._keep_build, key, slot, made)
        return made

    def report_key(self, candidate: Candidate) -> str | None:
        """What equal compilers' reports on a candidate have in common; None as for builds."""
        places = [(span.region, span.file, span.first_line, span.last_line) for span in self.spans.values()]
        return self._build_key(candidate.code, candidate.compile_args, ["report", *places])

    def _build_key(self, code: Mapping[str, str], arguments: Sequence[str], what: object = "build") -> str | None:
        """What equal builds have in common; None where builds are not alike (each slot lies elsewhere). Of the candidate
        that is the whole files that it gives: a region's name says nothing of where it lies."""
        if not self.same_place:
            return None
        placed = self.placed(arguments) if self.plan_appends else [*self.task.build.flags, *arguments]
        build = self.task.build
        plan = [[command.key for command in part] for part in (self.plan.reuse, self.plan.append, self.plan.other)]
        files = {file: hashlib.sha256(data).hexdigest() for file, data in self.spliced(code).items()}
        told = [build.command, build.configure, build.artifact, self.cwd, self.arch, files, self.region_files, placed]
        machine = [self._compilers, tool_path(), self.sandbox.name]
        return build_cache.key_of([what, self._tree(), *told, plan, *machine])

    def _tree(self) -> str:
        """The hash of what builds start from, which configuring and expanded macros replace."""
        if self._hashed is None or self._hashed[0] is not self._start:
            self._hashed = self._start, build_cache.tree_hash(self._start)
        return self._hashed[1]

    async def _made_before(self, slot: Slot, key: str, code: Mapping[str, str]) -> Built | BuildFailure | None:
        """The build of this key in its slot, as if it had just been made."""
        store = self.folder / f"{slot.name}-built"
        await to_its_end(shutil.rmtree, store, True)
        kept = await to_its_end(build_cache.find, key, slot.start, store)
        if kept is None:
            return None
        if kept.snapshot is None:
            return BuildFailure(Outcome.BUILD_FAILED, kept.log)
        made = await to_its_end(restore, slot.folder, kept.snapshot, self.sandbox.own)
        self._built_once = True
        regions = {name: code.get(name, span.text) for name, span in self.spans.items()}
        return Built(slot, made, kept.log, kept.commands, kept.artifact, kept.build_s, regions)

    def _keep_build(self, key: str, slot: Slot, made: Built | BuildFailure) -> None:
        if isinstance(made, Built):
            kept = KeptBuild(False, made.log, made.commands, made.artifact, made.build_s, made.snapshot)
        elif made.outcome is Outcome.BUILD_FAILED and not made.doubtful and not made.limit:
            kept = KeptBuild(True, made.log, (), "", 0.0, None)
        else:
            return
        build_cache.keep(key, kept, slot.start)

    async def _build_anew(
        self, slot: Slot, code: Mapping[str, str], arguments: Sequence[str], depends: bool
    ) -> Built | BuildFailure:
        doubted = False
        for number in range(1, mishaps.TRIES + 1):
            try:
                made = await self._build_once(slot, code, arguments, depends)
            except JobLost:
                if number == mishaps.TRIES:
                    raise
                continue
            if isinstance(made, Built) or not made.doubtful:
                self._built_once |= isinstance(made, Built)
                return made
            if doubted and (number == mishaps.TRIES or not mishaps.kills_inside(made.log)):
                break
            # Before the next try, not after it: what was missing may be there again.
            if self._built_once:
                await self._require_original(slot)
            doubted = True
        return made

    async def _require_original(self, slot: Slot) -> None:
        """The control of a doubtful failure. Raises InfrastructureError where the original does not build any more either."""
        original = await self._build_once(slot, {}, ())
        if isinstance(original, BuildFailure):
            raise InfrastructureError(
                f"the original, which was built before, does not build any more: {_tail(original.log)}",
                "a machine that builds what it built",
                "free space, or the compiler in its place; then the command again (or --resume)",
            )

    async def _build_once(
        self, slot: Slot, code: Mapping[str, str], arguments: Sequence[str], depends: bool = False
    ) -> Built | BuildFailure:
        await self._configure(slot)
        slot.start = await to_its_end(restore, slot.folder, slot.start, self.sandbox.own)
        self._splice(slot, code)
        result, commands = await self._compile(slot, self.task.build.command, arguments, depends)
        changed = await to_its_end(rewritten, slot.folder, slot.start)
        if outdated := self.plan.outdated(commands, changed):
            self._forgo_reuse(outdated)
            return await self._build_once(slot, code, arguments, depends)
        log = (result.stdout + result.stderr).decode(errors="replace")
        if result.limit is LimitHit.TIME:
            return BuildFailure(Outcome.TIMED_OUT, f"the build passed {self.task.build.timeout_s:g} s\n{log}")
        if result.exit_code != 0 or result.limit:
            why = f"the build passed its limit of {result.limit.value}\n" if result.limit else ""
            return BuildFailure(
                Outcome.BUILD_FAILED, why + log, not result.limit and mishaps.doubtful(log), bool(result.limit)
            )
        if stale := self._stale(commands, code, arguments):
            return BuildFailure(Outcome.BUILD_FAILED, f"{stale}\n{log}")
        program = await to_its_end(read_output, slot.folder, self.task.build.artifact, 2**31)
        if program is None:
            return BuildFailure(Outcome.BUILD_FAILED, f"the build ended without {self.task.build.artifact}\n{log}")
        regions = {name: code.get(name, span.text) for name, span in self.spans.items()}
        store = self.folder / f"{slot.name}-built"
        shutil.rmtree(store, ignore_errors=True)
        made = await to_its_end(snapshot, slot.folder, slot.start, store)
        return Built(slot, made, log, commands, hashlib.sha256(program).hexdigest(), result.wall_s, regions)

    def _stale(self, commands: Sequence[Recorded], code: Mapping[str, str], arguments: Sequence[str]) -> str | None:
        """Why a build that succeeded did not build what it was asked to."""
        if not self.plan_appends:
            return None
        edited = {self.spans[name].file for name in code if code[name] != self.spans[name].text}
        if missing := self.plan.missing(commands, sorted(edited)):
            return f"the build did not compile {', '.join(missing)} again as the original's build had: it is stale"
        if self.placed(arguments) and (missing := self.plan.missing(commands, self.region_files)):
            return f"the compile arguments did not reach every unit that reads {', '.join(missing)}"
        return None

    async def _compile(
        self, slot: Slot, command: str, arguments: Sequence[str], depends: bool = False
    ) -> tuple[JobResult, tuple[Recorded, ...]]:
        record = self.folder / f"{slot.name}-record"
        shutil.rmtree(record, ignore_errors=True)
        record.mkdir()
        self.sandbox.own(record)
        plan = self.plan_for(slot.name, arguments)
        await to_its_end(self._write_arguments, plan, arguments)
        binds = (
            Bind(slot.folder, REPO, writable=True),
            Bind(self.folder / "compilers", "/kw/compilers"),
            Bind(plan, "/kw/plan"),
            Bind(record, "/kw/record", writable=True),
        )
        inside = {bind.inside: self.sandbox.inside(bind.source, bind.inside) for bind in binds}
        env = {
            "PATH": f"{inside['/kw/compilers']}:{tool_path()}",
            **compiler_environment(self.task.language),
            "KW_PLAN": inside["/kw/plan"],
            "KW_RECORD": inside["/kw/record"],
            "KW_REPO": inside[REPO],
            **({"KW_DEPENDS": "1"} if depends else {}),
        }
        placed = self.task.build.flags if self.plan_appends else (*self.task.build.flags, *arguments)
        job = Job(
            tuple(words(command, self.arch, placed)),
            self.cwd,
            binds,
            env,
            Limits(
                self.task.build.timeout_s, self.task.needs.memory_bytes, 4096, 2 * 2**30, self.task.needs.disk_bytes
            ),
        )
        result = await self._spawn(job)
        mishaps.require_same(self._compilers)
        log = read_output(record, "commands", 64 * 2**20) or b""
        lists = {path.name: read_output(record, path.name, 16 * 2**20) or b"" for path in record.glob("*.deps")}
        return result, tuple(interpose.read_record(log, lists, inside[REPO]))

    def known_files(self) -> set[str]:
        """The files of the repository as builds start from it, configured if the task configures once."""
        return self._start.files()

    @property
    def region_files(self) -> list[str]:
        return sorted({span.file for span in self.spans.values()})

    @property
    def cwd(self) -> str:
        return str(PurePosixPath(REPO) / self.task.workdir)

    @property
    def places_arguments(self) -> bool:
        """Whether a candidate's compile arguments have a place: in the region's units, or in the build command."""
        return self.plan.sees_regions or "{flags}" in self.task.build.command

    @property
    def plan_appends(self) -> bool:
        """Whether the interposed compilers place a candidate's compile arguments (else the build command does)."""
        return self._plan_folder is not self._no_plan and self.plan.sees_regions

    def placed(self, arguments: Sequence[str]) -> list[str]:
        """What the interposed compilers append to the commands that read a region."""
        unplaced = () if "{flags}" in self.task.build.command else self.task.build.flags
        return [*unplaced, *arguments] if self.plan_appends else []

    def plan_for(self, slot_name: str, arguments: Sequence[str]) -> Path:
        """The plan's folder for builds with these arguments in a slot."""
        return self.folder / f"{slot_name}-plan" if self.placed(arguments) else self._plan_folder

    def _write_arguments(self, folder: Path, arguments: Sequence[str]) -> None:
        if folder == self._plan_folder:
            return
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._plan_folder, folder, copy_function=os.link)
        (folder / "flags").write_text("".join(f"{flag}\n" for flag in self.placed(arguments)))

    async def run(
        self, built: Built, run: Run, cpus: Sequence[int] = (), *, recorded: bool = False, under: Sequence[str] = ()
    ) -> RunResult:
        """One run of a built program from a fresh process and an untouched workspace; its outputs are collected. `under`
        are the words of a program that runs it, as a memory checker does.

        With `recorded` the kernels are timed too, which makes every launch some microseconds slower and the first one
        milliseconds: the program's own time of such a run is not its own any more. A run that was lost, or ended as if
        from outside, is made again; what ends so every time does it by itself.
        """
        for left in reversed(range(mishaps.TRIES)):
            try:
                result = await self._run_once(built, run, cpus, recorded, under)
            except JobLost:
                built.snapshot = await to_its_end(restore, built.slot.folder, built.snapshot, self.sandbox.own)
                if not left:
                    raise
            else:
                if not left or not mishaps.from_outside(result.job):
                    return result
            built.lost += 1
            if built.lost > mishaps.MOST_LOST:
                break
        raise JobFault(
            f"{built.lost} runs of a program were ended from outside, others were not",
            "nobody and nothing to end the programs that are run",
            "look for what sends signals: a memory guard, a batch system, a user",
        )

    async def _run_once(
        self, built: Built, run: Run, cpus: Sequence[int], recorded: bool, under: Sequence[str]
    ) -> RunResult:
        folder = built.slot.folder
        named = files_of(self.task, run)
        for file in named:
            drop_output(folder, file)
        timing = self._kernel_timing(built.slot) if recorded else KernelTiming()
        job = Job(
            (*under, *words(run.command, self.arch, self.task.build.flags)),
            self.cwd,
            (Bind(folder, REPO, writable=True), *self.beside, *timing.binds),
            {"PATH": tool_path(), **self.visible, **timing.env, **run.env},
            Limits(run.timeout_s, self.task.needs.memory_bytes, 2048, 2 * 2**30, self.task.needs.disk_bytes),
            gpu=self.uses_gpu,
            cpus=tuple(cpus),
        )
        result = await self._spawn(job)
        files = {file: read_output(folder, file, OUTPUT_FILE_LIMIT) for file in named}
        built.snapshot = await to_its_end(restore, folder, built.snapshot, self.sandbox.own)
        return RunResult(run.name, result, files, timing.read())

    @cached_property
    def device(self) -> int | None:
        """The index of the accelerator that runs use, the first visible one (0 where no tool names it); None without."""
        if not self.uses_gpu or self._device is not None:
            return self._device if self.uses_gpu else None
        return next((gpu.index for gpu in visible_gpus("amd" if self.task.language == "hip" else "nvidia")), 0)

    @property
    def visible(self) -> dict[str, str]:
        """What tells a program which accelerators it may use."""
        return visible_devices(self._device)

    @property
    def uses_gpu(self) -> bool:
        return self.task.needs.gpu or self.task.language != "cpp"

    def _kernel_timing(self, slot: Slot) -> KernelTiming:
        """What a run needs so that its kernels are timed; nothing where that cannot be."""
        recorder = self._recorder
        return (
            KernelTiming.into(self.folder / f"{slot.name}-kernels", recorder, self.sandbox)
            if recorder
            else KernelTiming()
        )

    @cached_property
    def _recorder(self) -> Recorder | None:
        """None on a CPU, and, with one note of the reason, where CUPTI is missing."""
        if self.task.language != "cuda":
            return None
        try:
            return Recorder(kernel_time.injection_library(), kernel_time.find_cupti().library.resolve().parent)
        except InfrastructureError as error:
            self.notes.append(f"no kernel times: {error.what}")
            return None


def machine_memory() -> int:
    """Bytes of memory that this machine has."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def failure_of(result: RunResult, timeout_s: float) -> tuple[Outcome, str] | None:
    """The outcome of a run that did not end by itself, with its reason; None where it did, whatever its exit code."""
    job = result.job
    if job.limit is LimitHit.TIME:
        return Outcome.TIMED_OUT, f"run {result.run!r} passed {timeout_s:g} s"
    if job.limit is not None:
        return Outcome.CRASHED, f"run {result.run!r} passed its limit of {job.limit.value}"
    if job.signal is not None:
        return Outcome.CRASHED, f"run {result.run!r} was ended by signal {job.signal}; {_tail(result.text, 300)}"
    return None


def _baseline_broken(task: Task, what: str, command: str, log: str) -> KernelwrightError:
    said = f"{task.path}: {what}: {_tail(log)}"
    if mishaps.lacks_tool(log):
        return InfrastructureError(said, "a machine with the tools that the build needs", "kernelwright doctor")
    return TaskError(said, f"{command!r} to succeed", "run the command by hand in the repository")


def _tail(log: str, limit: int = 1200) -> str:
    """The part of a log that says why: from its first error on, else its end."""
    text = log.strip()
    first = re.search(r"^.*(?:\b(?:error|Error|fatal)\b|/ld(?:\.\w+)?: )", text, re.MULTILINE)
    return text[first.start() :][:limit] if first else text[-limit:]
