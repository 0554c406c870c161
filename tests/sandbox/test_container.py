"""Containers: the command lines of three engines, and with each engine that works here the whole conformance suite.

The image is made of this machine's own shell and libraries, so no registry is asked.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_attacks import dies_with_its_product, ends_with_its_task

from kernelwright.errors import InfrastructureError, SandboxUnavailable, UsageError
from kernelwright.sandbox import Bind, Job, LimitHit, Limits, attacks, engines
from kernelwright.sandbox.backends import open_sandbox
from kernelwright.sandbox.container import ContainerSandbox
from kernelwright.sandbox.engines import Container
from kernelwright.sandbox.user import job_uid, own

IMAGE = f"kernelwright-test-{os.getpid()}"
"""Test processes beside each other make and remove one each."""
FOLDERS = ("tmp", "proc", "dev", "sys", "usr", "etc")
PROGRAMS = ("sh", "cat", "env", "true", "head")
CONTAINER = Container(
    "kernelwright-1", "image", (Bind(Path("/a"), "/a"), Bind(Path("/b,c"), "/b", writable=True)),
    Limits(memory_bytes=1000, processes=10), gpu=False, program="/launch",
)  # fmt: skip


def options(words: list[str]) -> dict[str, list[str]]:
    """Each option's values, as `--option value` or `--option=value`."""
    found: dict[str, list[str]] = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            name, _, value = word.partition("=")
            found.setdefault(name, []).append(value or ("" if following.startswith("--") else following))
    return found


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_an_engine_is_asked_for_a_closed_container_that_is_gone_afterwards(engine: str) -> None:
    words = engines.words(engine, CONTAINER)
    asked = options(words)
    assert words[:2] == [engine, "run"]
    assert words[-2:] == ["/launch", "image"]
    assert {"--rm", "--read-only"} <= set(asked)
    assert asked["--network"] == ["none"]
    assert asked["--pull"] == ["never"]
    assert asked["--cap-drop"] == ["ALL"]
    assert "no-new-privileges" in asked["--security-opt"]
    assert "seccomp=unconfined" not in asked["--security-opt"]
    assert asked["--tmpfs"] == ["/tmp:rw,exec,nosuid,nodev,mode=1777,size=1000"]
    assert asked["--shm-size"] == ["1000"]
    assert asked["--mount"] == ["type=bind,source=/a,target=/a,readonly", 'type=bind,"source=/b,c",target=/b']
    assert asked["--user"][0].split(":")[0] == str(job_uid() or os.getuid())
    assert asked["--user"][0].split(":")[0] != "0"
    assert ("--read-only-tmpfs" in asked) == ("--http-proxy" in asked) == (engine == "podman")


def test_apptainer_is_asked_for_the_same() -> None:
    words = engines.words("apptainer", CONTAINER)
    asked = options(words)
    assert words[:3] == ["apptainer", "--silent", "exec"]
    assert words[-2:] == ["image", "/launch"]
    assert {"--userns", "--containall", "--no-home", "--cleanenv", "--no-privs", "--net", "--no-init"} <= set(asked)
    assert (asked["--network"], asked["--drop-caps"]) == (["none"], ["all"])
    assert asked["--mount"] == ["type=bind,source=/a,target=/a,ro", 'type=bind,"source=/b,c",target=/b']


@pytest.mark.parametrize(
    ("nodes", "wanted"),
    [
        (["/dev/nvidia0"], {"docker": {"--gpus": ["all"]}, "apptainer": {"--nv": [""]}}),
        (["/dev/kfd", "/dev/dri"], {"docker": {"--device": ["/dev/kfd", "/dev/dri"], "--group-add": ["44"]},
                                    "podman": {"--device": ["/dev/kfd", "/dev/dri"]}, "apptainer": {"--rocm": [""]}}),
    ],
)  # fmt: skip
def test_devices_are_asked_for_in_each_engines_way(
    nodes: list[str], wanted: dict[str, dict[str, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "gpu_nodes", lambda: [Path(node) for node in nodes])
    monkeypatch.setattr(engines, "gpu_groups", lambda: {44})
    for engine, extra in wanted.items():
        more, less = (options(engines.words(engine, replace(CONTAINER, gpu=gpu))) for gpu in (True, False))
        assert {name: values for name, values in more.items() if name not in less}.items() >= extra.items()


def test_podman_that_knows_no_nvidia_device_is_told_how_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "gpu_nodes", lambda: [Path("/dev/nvidia0")])
    monkeypatch.setattr(engines, "CDI", (tmp_path, tmp_path / "nowhere"))
    with pytest.raises(SandboxUnavailable, match="nvidia-ctk cdi generate"):
        engines.words("podman", replace(CONTAINER, gpu=True))
    (tmp_path / "nvidia.yaml").touch()
    assert options(engines.words("podman", replace(CONTAINER, gpu=True)))["--device"] == ["nvidia.com/gpu=all"]


def test_an_image_and_its_engine_belong_together() -> None:
    with pytest.raises(UsageError, match=r"docker needs an image.*--image"):
        open_sandbox("docker")
    with pytest.raises(UsageError, match="namespaces runs no image"):
        open_sandbox("namespaces", "debian")


def test_an_engine_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("auto", "podman", "docker", "apptainer"):
        with pytest.raises(SandboxUnavailable, match=r"(podman|docker|apptainer) is not installed.*--no-sandbox"):
            open_sandbox(name, "debian")


def test_docker_without_its_daemon_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody")
    with pytest.raises(SandboxUnavailable, match=r"Cannot connect.*systemctl start docker"):
        open_sandbox("docker", "debian")


# With an engine


def _libraries(program: Path) -> set[Path]:
    text = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return {Path(found) for found in re.findall(r"(/\S+) \(0x", text)}


def _root(folder: Path) -> Path:
    """An archive with a shell, what it needs, and the empty folders of a root."""
    programs = [Path(shutil.which(name) or pytest.skip(f"no {name}")) for name in PROGRAMS]
    files = {Path("/bin") / program.name: program for program in programs}
    files |= {library: library for library in set().union(*map(_libraries, programs))}
    folders = {parent for inside in files for parent in inside.parents} | {Path("/", name) for name in FOLDERS}
    archive = folder / "root.tar"
    with tarfile.open(archive, "w") as tar:
        for inside in sorted(folders - {Path("/")}):
            entry = tarfile.TarInfo(str(inside)[1:])
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if inside.name == "tmp" else 0o755
            tar.addfile(entry)
        for inside, file in files.items():
            tar.add(file.resolve(), str(inside)[1:])
    return archive


@pytest.fixture(scope="session", params=["podman", "docker"])
def engine(state: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[str]:
    """One that starts containers here, with our image in it; else the test is skipped with what it said."""
    name = str(request.param)
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    root = _root(tmp_path_factory.mktemp("image"))
    change = ["--change", "ENV PATH=/image/bin:/bin", "--change", "ENV CUDA_HOME=/image"]
    done = subprocess.run([name, "import", *change, root, IMAGE], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"{name}: {done.stderr.strip()}")
    try:
        probe = asyncio.run(ContainerSandbox(name, IMAGE).probe())
        if not probe.works:
            pytest.skip(probe.detail)
        yield name
    except InfrastructureError as error:
        pytest.skip(str(error))
    finally:
        subprocess.run([name, "rmi", IMAGE], capture_output=True)


def containers(engine: str, process: int) -> bytes:
    """Those of one of our processes, running or ended."""
    words = [engine, "ps", "--all", "--quiet", "--filter", f"name=kernelwright-{process}-"]
    return subprocess.run(words, check=True, capture_output=True).stdout


@pytest.fixture
def sandbox(engine: str) -> Iterator[ContainerSandbox]:
    yield ContainerSandbox(engine, IMAGE)
    assert containers(engine, os.getpid()) == b""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own(tmp_path)
    return tmp_path


@pytest.mark.long
@pytest.mark.parametrize("case", attacks.CASES, ids=attacks.name_of)
def test_an_attack_is_refused_or_stopped(
    case: attacks.Case, sandbox: ContainerSandbox, attacker: Path, tmp_path: Path
) -> None:
    assert asyncio.run(attacks.attack(sandbox, case, attacker, tmp_path)) is None


@pytest.mark.long
def test_a_job_in_a_container_is_a_job_like_any_other(sandbox: ContainerSandbox, attacker: Path, folder: Path) -> None:
    binds = (Bind(folder, "/workspace", writable=True), Bind(attacker, "/attack"))
    job = Job(("/bin/sh", "-c", "echo out; echo err >&2; echo made > made; exit 3"), "/workspace", binds)
    result = asyncio.run(sandbox.run(job))
    assert (result.exit_code, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert (folder / "made").read_text() == "made\n"
    assert 0 < result.wall_s <= result.outside_s
    crashed = asyncio.run(sandbox.run(replace(job, argv=("/attack", "crash"))))
    assert (crashed.exit_code, crashed.signal) == (None, 11)
    loud = replace(job, argv=("/attack", "speak_and_loop"), limits=Limits(wall_s=0.2), terminal=True)
    heard = asyncio.run(sandbox.run(loud))
    assert (heard.stdout, heard.limit) == (b"said\n", LimitHit.TIME)


@pytest.mark.long
def test_the_image_gives_the_environment_and_bound_folders_come_first_on_its_path(
    sandbox: ContainerSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://name:secret@proxy")
    job = Job(
        ("/bin/env",), "/", (Bind(tmp_path, "/kw/compilers"),), {"PATH": "/kw/compilers:/usr/local/cuda/bin", "A": "1"}
    )
    env = dict(line.split("=", 1) for line in asyncio.run(sandbox.run(job)).stdout.decode().splitlines())
    assert set(env) == {"PATH", "CUDA_HOME", "HOME", "TMPDIR", "LANG", "A"}
    assert (env["PATH"], env["CUDA_HOME"]) == ("/kw/compilers:/image/bin:/bin", "/image")


@pytest.mark.long
def test_the_record_names_engine_image_and_which_one_it_was(sandbox: ContainerSandbox, engine: str) -> None:
    assert re.fullmatch(rf"{engine} {IMAGE} [0-9a-f]{{12}}", sandbox.name)


@pytest.mark.long
def test_an_image_that_is_not_there_is_named(engine: str) -> None:
    with pytest.raises(SandboxUnavailable, match=f"{engine} pull no-such-image"):
        open_sandbox(engine, "no-such-image")


@pytest.mark.long
def test_nothing_survives_the_death_of_the_product(
    sandbox: ContainerSandbox, engine: str, attacker: Path, folder: Path, home: Path
) -> None:
    process = dies_with_its_product(attacker, folder, engine, IMAGE)
    while containers(engine, process):  # the engine removes it a moment later
        pass


@pytest.mark.long
def test_a_job_that_is_cancelled_leaves_nothing_running(
    sandbox: ContainerSandbox, attacker: Path, folder: Path
) -> None:
    ends_with_its_task(sandbox, attacker, folder)


@pytest.mark.long
def test_ten_jobs_at_once_are_kept_apart(sandbox: ContainerSandbox) -> None:
    jobs = [Job(("/bin/sh", "-c", f"echo {number}; exit {number}"), "/") for number in range(10)]

    async def together() -> list[tuple[int | None, bytes]]:
        return [(result.exit_code, result.stdout) for result in await asyncio.gather(*map(sandbox.run, jobs))]

    assert asyncio.run(together()) == [(number, b"%d\n" % number) for number in range(10)]
