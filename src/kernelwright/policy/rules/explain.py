"""What the rules know, for people: each rule with when it may be applied, why it could help, and what it assumes."""

from __future__ import annotations

import textwrap
from typing import Any

from kernelwright.policy.rules.draft import CODE_RULES, FLAG_RULES
from kernelwright.policy.rules.rule import FlagRule, Rule

WIDTH = 100


def listing() -> list[dict[str, Any]]:
    """Every rule: name, languages, what it changes, precondition, reason, assumption (None where it is exact)."""
    rules: list[Rule | FlagRule] = [*CODE_RULES, *FLAG_RULES]
    return [_entry(rule) for rule in rules]


def _entry(rule: Rule | FlagRule) -> dict[str, Any]:
    flags = isinstance(rule, FlagRule)
    return {
        "name": rule.name,
        "languages": list(rule.languages),
        "changes": "compile arguments" if flags else "code",
        "arguments": [list(option) for option in rule.options] if isinstance(rule, FlagRule) else [],
        "precondition": rule.precondition,
        "reason": rule.reason,
        "assumes": rule.assumes or None,
    }


def explain() -> str:
    """The listing as text for a terminal."""
    return "\n\n".join(_paragraph(entry) for entry in listing())


def _paragraph(entry: dict[str, Any]) -> str:
    lines = [f"{entry['name']} ({', '.join(entry['languages'])}; changes {entry['changes']})"]
    options = "; ".join(" ".join(option) for option in entry["arguments"])
    for title, text in (("tries", options), ("when", entry["precondition"]), ("why", entry["reason"]),
                        ("assumes", entry["assumes"])):  # fmt: skip
        if text:
            indent = " " * 11
            lines.append(textwrap.fill(text, WIDTH, initial_indent=f"  {title:9}", subsequent_indent=indent))
    return "\n".join(lines)
