"""Inputs on which a reader once took hours, or would with a slightly other expression. All end, at a size that is out of
reach for more than an effort in proportion to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from limits import ends
from targets import answers, code_blocks, screening

from kernelwright import calls, explain, interpose, preprocessor, source
from kernelwright.init import prints
from kernelwright.init.makefile import Makefile
from kernelwright.screen.text import Code
from kernelwright.toolchain import assembly, cpp, cuda, device_code, hip, symbols
from kernelwright.trace import Candidate

LENGTH = 100_000


def explained(text: str) -> None:
    explain.explained(Candidate({}, (), text), [])


def answered(text: str) -> None:
    answers(text.encode())


def fenced(text: str) -> None:
    code_blocks(f"```cpp\n{text}\n```".encode())


def screened(text: str) -> None:
    screening(text[:59_000].encode())


def listed(text: str) -> None:
    interpose.read_record(b"1\x001\x000\x00c\x00/a\x00x\x00g++\x00", {"x": text.encode()}, "/a")


def assembled(text: str) -> None:
    for function in assembly.parse(".type f, @function\nf:\n.loc 1 1\n" + text, lambda _: True, (1, 9), ["f"]):
        assembly.mix(function.instructions)
        assembly.loops(function)


def ptx(text: str) -> None:
    for function in device_code.parse_ptx(".entry f\n{\n" + text).values():
        device_code.mix_ptx(function.instructions)
        function.loops()


def sass(text: str) -> None:
    for function in device_code.parse_sass(".text.f:\n" + text).values():
        device_code.mix_sass(function.instructions)


def remarked(text: str) -> None:
    cpp.parse_remarks("a.cpp:1:1: note: " + text, "/", "a.cpp", (1, 9))


def screen_text(text: str) -> None:
    assert Code(text, "cpp").parsed_text is not None


def kernels(text: str) -> None:
    source.unparsed_kernels(text.encode(), "cuda")


def printed(text: str) -> None:
    prints.read_prints(f"void f() {{ {text} }}".encode(), "a.cpp", "cpp")


def defined(text: str) -> None:
    preprocessor.definitions({"a.h": text})


READERS: dict[Callable[[str], object], tuple[str, ...]] = {
    calls.find_calls: (
        "[", "{", '{"', '{"a":', '{"name": x\n', "<tool_call>", "<tool_call>[", '<tool_call>{"', '\\"', "<function=a>", " ",
        "<function=a><parameter=b>", "```\n{", "```\n[\n", "`", "</think>", '"""', ",", "{'a':",
    ),
    answered: ("{", '{"', '{"final_code":', "{'final_code': ", "if (a) { b; \"\n", "}", "[", '\\"', "```\n", "/*"),
    fenced: ("/*", "void f%(){}\n", "{", "(", "*", "[", "#if a\n", "'", "a<", "//\n"),
    explained: ("1", "1.", "1 ", "fast ", "fast 1", "2x ", "%"),
    listed: ("a\\ ", "a:", "../", "a/", "\\\n", "$"),
    assembled: (" mov a,", " mov %eax (a,", "1:\n jmp 1\n", " rep ", ".L%:\n jmp .L%\n", ".loc 1 9"),
    ptx: ("a {", "bra ", "{", ".entry ", "$L%:\nbra $L%;\n", "@%p ", " a"),
    sass: (" /*0000*/ a", " /*0000*/ `(", " /*0000*/  ", ".L_%:\n /*0000*/ BRA `(.L_%);\n"),
    cuda.parse_ptxas: ("Compiling entry function 'a' ", "Compiling entry function 'a' Used 1 registers 1", "1"),
    hip.parse_resources: ("\n", " ", "\n.amdhsa_kernel a\n"),
    remarked: (" ", " [-Rpass", "[-Rpass=a]"),
    symbols.base_name: ("_Z1a", "1", "_ZN"),
    symbols.demangled_name: ("<", "(", "<(", "const ", "::"),
    screen_text: ("/*", 'R"(', '"\\"', "'\\'", "#/*\n", "enum:", "[[", "\\\n", "[", '"', "#", "__attribute__("),
    kernels: ("__global__ ", "a ", "__global__ __launch_bounds__", "__launch_bounds__(", "__global__ a("),
    printed: ('std::cout << "a";', 'printf("a', "{", 'x << "a" '),
    defined: ("/*", 'R"(', "#define a(", "#/*", "\\\n", "#define a% b\n", '"\\"'),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
def test_the_effort_is_in_proportion_to_the_text(reader: Callable[[str], object]) -> None:
    for piece in READERS[reader]:
        count = LENGTH // len(piece)
        text = "".join(piece.replace("%", str(n)) for n in range(count)) if "%" in piece else piece * count
        ends(reader, text)


@pytest.mark.parametrize(
    "piece", ["{", "(", "a[", "if (a) ", "a = ", "-", "a + ", "<", "*", "x::", "[&]{", "f<", "struct a {"]
)
def test_a_candidate_is_screened_in_bounded_time(piece: str) -> None:
    for head in ("", "void smooth(float* a, int n) {"):
        ends(screened, (head + piece * LENGTH)[:20_000])


def test_variables_that_grow_without_end_are_expanded_to_a_limit() -> None:
    made = Makefile(Path("Makefile"))
    made.variables |= {
        "A": "$(A)$(A)",
        "B": "$(foreach x,$(A) $(A),$(B)$(B))",
        "C": "$(subst a,$(D),$(D))",
        "D": "a" * 10**6,
    }
    for name in "ABC":
        ends(made.value, name)
