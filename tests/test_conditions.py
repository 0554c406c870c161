"""What the machine did meanwhile: read for real, and the warnings from readings made up."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kernelwright.conditions import GPU_FIELDS, Conditions, Device, Snapshot, Watch

QUIET = Snapshot(at_s=0.0, busy_s=100.0, stolen_s=5.0, own_s=10.0, load=0.1, throttles=3, device=None)
AFTER = replace(QUIET, at_s=10.0, busy_s=108.0, own_s=18.0)


def conditions(after: Snapshot = AFTER, before: Snapshot = QUIET, **machine: object) -> Conditions:
    known: dict[str, object] = {"cpu": "x", "cores": 4, "governor": "performance", "turbo": False}
    return Conditions(before=before, after=after, **(known | machine))  # type: ignore[arg-type]


def device(processes: tuple[int, ...] = (), **fields: str) -> Device:
    quiet = dict.fromkeys(GPU_FIELDS, "Not Active") | {"utilization.gpu": "0"}
    return Device(quiet | {name.replace("__", "."): value for name, value in fields.items()}, processes)


def test_a_watch_on_this_machine_reads_it_and_goes_into_json() -> None:
    async def scenario() -> Conditions:
        watch = await Watch.start()
        sum(range(100_000))
        return await watch.finish()

    found = asyncio.run(scenario())
    assert found.cores
    assert found.after.own_s >= found.before.own_s
    assert found.after.at_s > found.before.at_s
    assert json.loads(json.dumps(found.to_json()))["warnings"] == list(found.warnings)


def test_our_own_work_is_no_reason_to_warn() -> None:
    assert conditions().other_cores == pytest.approx(0.0)
    assert conditions().warnings == ()


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (conditions(replace(AFTER, busy_s=118.0)), "other processes kept 1.0 of 4 cores busy"),
        (conditions(replace(AFTER, stolen_s=6.0)), "the hypervisor took 0.10 cores away"),
        (conditions(governor="powersave"), "the clock governor is powersave, not performance"),
        (conditions(turbo=True), "turbo is on: clocks depend on heat and on the other cores"),
        (conditions(replace(AFTER, throttles=4)), "heat slowed cores down"),
        (conditions(before=replace(QUIET, device=device((7, 8)))), "2 other processes were on the device"),
        (
            conditions(before=replace(QUIET, device=device(utilization__gpu="40"))),
            "the device was 40 % busy before the first run",
        ),
        (
            conditions(replace(AFTER, device=replace(device(), fields=device().fields | {GPU_FIELDS[-1]: "Active"}))),
            "heat slowed the device down",
        ),
    ],
)
def test_each_doubt_is_one_short_sentence(found: Conditions, sentence: str) -> None:
    assert found.warnings == (sentence,)


def test_a_device_that_is_still_warm_from_our_own_run_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = tmp_path / "readings"
    readings.write_text("6\n")
    values = ["Not Active" if name != "utilization.gpu" else "$busy" for name in GPU_FIELDS]
    smi = tmp_path / "nvidia-smi"
    smi.write_text(
        f"#!/bin/sh\nbusy=$(cat {readings})\n"
        f'case "$2" in *apps*) ;; *) echo "{", ".join(values)}"; echo 0 > {readings} ;; esac\n'
    )
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr("kernelwright.conditions.SETTLE_S", 0.0)

    async def scenario() -> Conditions:
        return await (await Watch.start(gpu=0)).finish()

    found = asyncio.run(scenario())
    assert found.before.device is not None
    assert found.before.device.fields["utilization.gpu"] == "0"
    assert not any("busy before" in warning for warning in found.warnings)


def test_what_cannot_be_read_is_unknown_and_warns_of_nothing() -> None:
    blind = Snapshot(0.0, None, None, 0.0, None, None, None)
    found = conditions(replace(blind, at_s=1.0), blind, cpu=None, cores=None, governor=None, turbo=None)
    assert found.other_cores is None
    assert found.warnings == ()
