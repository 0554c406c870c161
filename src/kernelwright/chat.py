"""What a policy is told at the start of a rollout, and how its final answer is read.

The first two messages carry the five inputs that the paper fixes (arXiv 2510.17158): the system instruction, where the
region lies, its exact text, the baseline time of the unmodified program, and the catalog of tools. The user's message
has the same as data, which policies that are no language models read. The loop is `kernelwright.rollout`, reading tool
calls is `kernelwright.calls`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.blocks import fenced, merge_functions, named_region, region_code
from kernelwright.calls import loads, objects_in
from kernelwright.errors import ModelMistake
from kernelwright.measure import seconds
from kernelwright.policy import ToolSpec
from kernelwright.toolbox import kind_of
from kernelwright.trace import Candidate, Message

LANGUAGES = {"cuda": "CUDA C++", "hip": "HIP C++", "cpp": "C++"}
ANSWER_KEYS = ("final_code", "explanation", "compile_args")

BENCHMARK = "benchmark_code"
"""The tool that decides what is worth answering; the prompt speaks of it where it is among the tools."""

SYSTEM = """\
You are an expert in performance engineering. Make {what} of a real {language} application faster, without changing what \
it computes.

Platform: {platform}
Compilation target: {arch}

Rules for the code
- Only the text of {what} may change. What is used outside it keeps its name and its call-compatible type.
- The whole application is built with your text in place, run, and compared with the original: {checks}
- Compile arguments may be added{not_allowed}."""

BUDGET = """
- Before you answer, benchmark what you propose. At most {max_calls} calls of benchmark_code are made for you."""

CALLING = """

How to call a tool
Think first, in short. Code goes into a fenced block before the call, never into JSON: the whole text of the region, or \
complete functions of it.{tags} A turn looks like this (its code is of another program):
```{tag}
void scale(float *a, int n) {{
  for (int i = 0; i < n; ++i) a[i] *= 2.0f;
}}
```
<tool_call>
{{"name": "{tool}", "arguments": {{{arguments}}}}}
</tool_call>
If your interface has tool calls of its own, use those, with the code in a fenced block of the same message.
Then stop and wait for the result. Go on until nothing gets faster any more."""

SEVERAL = " Each fence names its region, as in ```{tag} region={name}."

ANSWER = """

Final answer
{when} one JSON object and no tool call:
{{"final_code": {example}, "explanation": "what the kernel does, what was changed, why it is faster", "compile_args": []}}
final_code is {forms}."""

USER = """\
Task: {task}

{regions}

Time of the unmodified program: {baseline}. A change below {min_effect:.1%} does not count.
Compile arguments of the unmodified program: {flags}{tunables}"""

CATALOG = """

Tools
{tools}"""

BEGIN = """

Begin with a first change: the new code in a fenced block, then a call of benchmark_code."""


@dataclass(frozen=True)
class RegionText:
    """A region as the policy sees it: its file relative to the repository's root, its lines (from 1, both included)."""

    file: str
    first_line: int
    last_line: int
    text: str


@dataclass(frozen=True)
class Briefing:
    """What a rollout's policy is told of its task; nothing in it names the task file, hidden paths or held-out runs."""

    task: str
    language: str
    """cuda, hip or cpp."""
    platform: str
    """As in "NVIDIA H200, sm_90, nvcc 13.0" or a CPU's model and cores."""
    arch: str
    regions: Mapping[str, RegionText]
    files: Mapping[str, str]
    """The whole files that hold the regions, path → text."""
    baseline_s: float
    """Time of the unmodified program in seconds."""
    flags: tuple[str, ...] = ()
    tunables: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    forbid_flags: tuple[str, ...] = ()
    min_effect: float = 0.01
    max_calls: int = 8
    checks: str = "its output must be the same."
    """How results are checked, in words."""

    def to_json(self) -> dict[str, Any]:
        """The structured form, the user message's `data`."""
        return {
            "task": self.task,
            "language": self.language,
            "arch": self.arch,
            "regions": {name: vars(region) for name, region in self.regions.items()},
            "files": dict(self.files),
            "flags": list(self.flags),
            "tunables": {name: list(values) for name, values in self.tunables.items()},
            "forbid_flags": list(self.forbid_flags),
            "baseline_s": self.baseline_s,
            "min_effect": self.min_effect,
            "max_calls": self.max_calls,
        }


def opening(briefing: Briefing, tools: Sequence[ToolSpec], seed: int = 0) -> list[Message]:
    """The system and the user message that a rollout starts with; without tools, the question is asked directly.

    Policies are functions of messages, so the rollout's seed stands in the user message's data.
    """
    user = USER.format(
        task=briefing.task,
        regions="\n\n".join(_region(name, region, briefing.language) for name, region in briefing.regions.items()),
        baseline=seconds(briefing.baseline_s),
        min_effect=briefing.min_effect,
        flags=" ".join(briefing.flags) or "none",
        tunables=_tunables(briefing.tunables),
    )
    user += CATALOG.format(tools="\n".join(map(catalog_entry, tools))) if tools else ""
    user += BEGIN if BENCHMARK in {tool.name for tool in tools} else ""
    return [
        Message("system", _system(briefing, tools)),
        Message("user", user, data={**briefing.to_json(), "seed": seed}),
    ]


def _system(briefing: Briefing, tools: Sequence[ToolSpec]) -> str:
    benchmark = any(tool.name == BENCHMARK for tool in tools)
    text = SYSTEM.format(
        what="the regions" if len(briefing.regions) > 1 else "the region",
        language=LANGUAGES.get(briefing.language, briefing.language),
        platform=briefing.platform,
        arch=briefing.arch,
        checks=briefing.checks,
        not_allowed=f" (not {', '.join(briefing.forbid_flags)})" if briefing.forbid_flags else "",
    )
    text += BUDGET.format(max_calls=briefing.max_calls) if benchmark else ""
    if tools:
        tool, arguments = (BENCHMARK, '"compile_args": []') if benchmark else (tools[0].name, "…")
        tags = SEVERAL.format(tag=_tag(briefing.language), name=next(iter(briefing.regions)))
        text += CALLING.format(tags=tags if len(briefing.regions) > 1 else "", tag=_tag(briefing.language), tool=tool,
                               arguments=arguments)  # fmt: skip
    if benchmark:
        forms = 'the id of a candidate that you benchmarked, or "original" if none was faster, or new text'
        return text + ANSWER.format(
            when="Only after you saw results of benchmark_code, write", example='"c1"', forms=forms
        )
    forms = 'the new text of the region (with several, an object {region: text}), or "original"'
    return text + ANSWER.format(when="Write" if not tools else "At the end, write", example='"…"', forms=forms)


def _tag(language: str) -> str:
    return "cpp" if language == "cpp" else "cuda"


def _region(name: str, region: RegionText, language: str) -> str:
    where = f"Region {name}: {region.file}, lines {region.first_line} to {region.last_line}"
    return f"{where}\n```{_tag(language)}\n{region.text.rstrip()}\n```"


def _tunables(tunables: Mapping[str, tuple[int, ...]]) -> str:
    if not tunables:
        return ""
    choices = "; ".join(f"-D{name}= one of {', '.join(map(str, values))}" for name, values in tunables.items())
    return f"\nMacros that you may define: {choices}"


def catalog_entry(spec: ToolSpec) -> str:
    """One tool of the catalog in words: what it does and returns, and its arguments."""
    lines = [f"- {spec.name}: {spec.description}"]
    required = spec.schema.get("required", ())
    for name, prop in spec.schema.get("properties", {}).items():
        state = "required" if name in required else "optional"
        described = f": {prop['description']}" if prop.get("description") else ""
        default = f", default {json.dumps(prop['default'])}" if prop.get("default") not in (None, [], {}, "") else ""
        lines.append(f"    {name} ({kind_of(prop)}, {state}{default}){described}")
    return "\n".join(lines)


def said(message: Message) -> str:
    """All that an assistant message says, what a server gave apart as its reasoning included."""
    reasoning = message.data.get("reasoning")
    return f"{reasoning}\n{message.content}" if reasoning else message.content


def candidates_of(messages: Sequence[Message]) -> dict[str, Candidate]:
    """The candidates that were benchmarked so far, by id, as the tools' results name them."""
    return {
        message.data["candidate"]: Candidate(dict(message.data["code"]), tuple(message.data.get("compile_args", ())))
        for message in messages
        if message.role == "tool" and "candidate" in message.data and "code" in message.data
    }


def parse_answer(
    text: str, regions: Mapping[str, str], candidates: Mapping[str, Candidate], language: str = "cpp"
) -> Candidate:
    """The final answer in `text`: its last JSON object with one of the answer's keys.

    `final_code` is text, {region: text}, the id of a candidate, or "original"; where it is missing, the message's fenced
    blocks are the code. `regions` gives the original texts by name. Raises ModelMistake, which is an observation for
    the model: the rollout goes on.
    """
    answers = [value for value in objects_in(text) if any(key in value for key in ANSWER_KEYS)]
    if not answers:
        raise ModelMistake("the message holds neither a tool call nor a final answer")
    answer = answers[-1]
    explanation = answer.get("explanation")
    args = _compile_args(answer.get("compile_args"))
    base = _answered_code(answer.get("final_code"), text, regions, candidates, language)
    return Candidate(base.code, args or base.compile_args, explanation if isinstance(explanation, str) else "")


def _compile_args(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        decoded = loads(value) if value.lstrip().startswith("[") else None
        value = decoded if isinstance(decoded, list) else value.split()
    if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
        raise ModelMistake(f"compile_args is {json.dumps(value, default=str)[:80]}", "a list of texts", '["-O3"]')
    return tuple(value or ())


def _answered_code(
    code: object, text: str, regions: Mapping[str, str], candidates: Mapping[str, Candidate], language: str
) -> Candidate:
    if isinstance(code, str) and code.lstrip().startswith("{") and isinstance(loads(code), dict):
        code = loads(code)
    if isinstance(code, str):
        word = code.strip().strip("`'\"")
        if word.lower() == "original":
            return Candidate()
        if word in candidates:
            return candidates[word]
        if re.fullmatch(r"c\d+", word):
            known = f"one of {', '.join(candidates)}" if candidates else "code, since no candidate was benchmarked"
            raise ModelMistake(f"there is no candidate {word!r}", known, '"original" to keep the code as it is')
        if _is_code(word):
            return Candidate({_only(regions): _merged(code, _only(regions), regions, language)})
    if isinstance(code, dict) and code:
        return Candidate(
            {name: _merged(new, named_region(name, regions), regions, language) for name, new in code.items()}
        )
    proposed = region_code(text, regions, language)
    if not proposed and code not in (None, "", {}):
        raise ModelMistake(
            f"final_code is {json.dumps(code, default=str)[:80]}", 'code, a candidate\'s id, or "original"'
        )
    if not proposed:
        raise ModelMistake("the answer has no final_code", "code, a candidate's id, or \"original\"",
                           '"original" to keep the code as it is')  # fmt: skip
    return Candidate(proposed)


def _is_code(word: str) -> bool:
    return any(char in word for char in "{};=(") and len(word) > 8


def _only(regions: Mapping[str, str]) -> str:
    if len(regions) != 1:
        raise ModelMistake("final_code is one text, but the task has several regions",
                           f"an object with {', '.join(regions)}")  # fmt: skip
    return next(iter(regions))


def _merged(new: object, name: str, regions: Mapping[str, str], language: str) -> str:
    if not isinstance(new, str):
        raise ModelMistake(f"the code of region {name!r} is {json.dumps(new, default=str)[:80]}", "a text")
    blocks = fenced(new + "\n")
    return merge_functions(regions[name], blocks[-1].text if blocks else new, language)
