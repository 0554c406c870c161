"""How results look in a terminal: tables and a few sentences, nothing computed here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from kernelwright.accept import Acceptance
from kernelwright.measure import seconds
from kernelwright.outcome import Comparison, Outcome, Verdict
from kernelwright.toolchain import Finding
from kernelwright.trace import Message

STATUS = {
    "passed": "[green]passed[/]",
    "failed": "[red]failed[/]",
    "not_applicable": "[dim]not applicable[/]",
    "built": "[green]built[/]",
}
GOOD = {Comparison.FASTER: "green", Comparison.SLOWER: "red"}


def findings_table(findings: Sequence[Finding]) -> Table:
    table = Table("", "thing", "what is there", "what to do", box=None, pad_edge=False)
    for finding in findings:
        mark = Text("ok", "green") if finding.works else Text("no", "yellow")
        table.add_row(mark, finding.name, Text(finding.detail), Text(finding.advice))
    return table


def attack(console: Console, name: str, how: str | None) -> None:
    """One attack on a sandbox: refused or stopped, or how it got further."""
    mark = Text("refused", "green") if how is None else Text("THROUGH", "bold red")
    console.print(mark, Text(name if how is None else f"{name}: {how}"))


def attacks(console: Console, sandbox: str, tried: int, through: int) -> None:
    verdict = f"{through} of {tried} attacks got through" if through else f"all {tried} attacks refused or stopped"
    console.print(Text(f"{sandbox}: {verdict}"))
    if sandbox == "none":
        console.print(Text("there is no isolation; the attacks that would do harm were not tried"))


def acceptance(console: Console, result: Acceptance) -> None:
    table = Table("probe", "region", "where", "result", "what was seen", box=None, pad_edge=False)
    for probe in result.probes:
        table.add_row(
            probe.probe,
            probe.region,
            probe.target,
            STATUS[probe.status],
            Text(" ".join(filter(None, (probe.outcome, _one_line(probe.reason))))[:90]),
        )
    console.print(table)
    for note in result.notes:
        console.print(Text(f"note: {note}"))
    if result.measurements:
        first = result.measurements[0]
        noise = f", noise {first.base_noise:.2%}" if first.base_noise is not None else ""
        console.print(f"baseline {seconds(first.base_s)}{noise}")
    if result.reasons:
        console.print(f"[bold red]refused[/] {result.task}")
    elif result.accepted:
        console.print(f"[bold green]accepted[/] {result.task}")
    else:
        console.print(f"[bold]builds[/] {result.task}: nothing was run, so it is not accepted yet")
    for reason in result.reasons:
        console.print(Text(f"  {reason}"))


def verdict(console: Console, result: Verdict) -> None:
    style = "green" if result.outcome is Outcome.CORRECT else "red"
    line = Text(f"{result.outcome.value}", f"bold {style}")
    if result.comparison:
        line.append(f", {result.comparison.value}", GOOD.get(result.comparison, ""))
    console.print(line)
    console.print(
        Text(f"  {_one_line(result.reason) if result.outcome is not Outcome.BUILD_FAILED else result.reason[:2000]}")
    )
    for check in result.checks:
        if check.passed is False:
            console.print(Text(f"  run {check.run}, {check.check}: {check.detail}"))
    for name, samples in result.samples.items():
        console.print(
            f"  {name}: {seconds(samples['base_s'])} → {seconds(samples['candidate_s'])}, "
            f"{len(samples['pairs'])} pairs, stopped: {samples['stop']}"
        )
        for warning in samples["warnings"]:
            console.print(Text(f"  warning: {warning}", "yellow"))
    if result.kernel_speedup is not None:
        console.print(f"  the region's kernels alone: {result.kernel_speedup:.3g}×")
    if result.evidence:
        console.print(f"  evidence: {', '.join(result.evidence.kinds) or 'exit code'}; {result.evidence.independence}")
        for note in result.evidence.notes:
            console.print(Text(f"  note: {note}"))


def headline(result: Mapping[str, Any]) -> str:
    """A result in a few words: its outcome, and the speedup with its interval."""
    if result["outcome"] != Outcome.CORRECT.value:
        return str(result["outcome"])
    text = str(result["comparison"])
    if result["speedup"] is not None and result["interval"]:
        text += f" {result['speedup']:.3f}× [{result['interval'][0]:.3f}, {result['interval'][1]:.3f}]"
    return text


def optimized(console: Console, result: Mapping[str, Any], folder: Path) -> None:
    """What `optimize` came to: the table, the explanation, where the patch lies."""
    faster = result["outcome"] == Outcome.CORRECT.value and result["comparison"] == Comparison.FASTER.value
    first = next(iter(result["samples"].values()), None)
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row(
        "outcome", f"{result['outcome']}, {result['comparison']}" if result["comparison"] else result["outcome"]
    )
    if first is not None:
        table.add_row("baseline", seconds(first["base_s"]))
        table.add_row("candidate", seconds(first["candidate_s"]))
    if result["speedup"] is not None and result["interval"]:
        level = f" at {result['level']:.1%}" if result["level"] else ""
        table.add_row(
            "speedup", f"{result['speedup']:.3f}× [{result['interval'][0]:.3f}, {result['interval'][1]:.3f}]{level}"
        )
    if result["kernel_speedup"] is not None:
        table.add_row("kernels alone", f"{result['kernel_speedup']:.3f}×")
    for part, gain in result["gain"].items():
        if gain is not None:
            table.add_row(f"gain by {part}", f"{gain:.3f}×")
    if result["evidence"] is not None:
        table.add_row("evidence", f"{', '.join(result['evidence']) or 'exit code'}; {result['independence']}")
    if not faster:
        table.add_row("why", Text(_one_line(result["reason"])[:300]))
    for note in result["notes"]:
        table.add_row("note", Text(note))
    console.print(table)
    if faster and result["candidate"]:
        console.print(Text(result["candidate"]["explanation"]))
    if result["flags_hint"]:
        console.print(Text(f"flags: {result['flags_hint']}"))
    if faster and result["patch"]:
        patches = sorted(folder.glob("*.patch"))
        console.print(f"patch: {patches[0] if patches else folder}", soft_wrap=True, markup=False)
        console.print(f"apply it with: kernelwright apply {result['run']}")
    elif not faster:
        console.print("the original stays as it is")


def approvals(decisions: Sequence[Mapping[str, Any]]) -> str:
    """What a person said of the generated code, in a sentence."""
    yes = sum(decision["approved"] for decision in decisions)
    return f"a person was asked about {len(decisions)} pieces of code: {yes} approved, {len(decisions) - yes} refused"


def trace(console: Console, messages: Sequence[Message]) -> None:
    """A rollout, readable: who said what, which tools were called, how long they took."""
    for message in messages:
        took = f" [dim]{message.elapsed_s:.1f} s[/]" if message.elapsed_s else ""
        if message.role == "tool":
            console.print(f"[bold cyan]{message.name}[/]{' [red]failed[/]' if message.ok is False else ''}{took}")
        else:
            console.print(f"[bold]{message.role}[/]{took}")
        if message.content:
            console.print(Text(message.content))
        for call in message.tool_calls:
            arguments = {key: value for key, value in call.arguments.items() if key != "code"}
            console.print(Text(f"→ {call.name} {json.dumps(arguments, ensure_ascii=False)}"))
            code = call.arguments.get("code")
            for name, text in code.items() if isinstance(code, dict) else [("", code)] if code else []:
                console.print(Text(f"  {name}"))
                console.print(Syntax(str(text), "cpp", background_color="default"))


def rule(entry: Mapping[str, Any]) -> str:
    """A rule of the embedded policy on one line."""
    return f"{entry['name']:24} {', '.join(entry['languages']):16} changes {entry['changes']}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
