"""Fenced code: to which region it belongs, and how functions of a block take the place of like-named ones."""

import pytest

from kernelwright.blocks import fenced, merge_functions, named_region, region_code
from kernelwright.errors import ModelMistake

TWO = "static const int N = 4;\n\nvoid first(int *a) {\n  a[0] = 1;\n}\n\nvoid second(int *a) {\n  a[1] = 2;\n}\n"
KERNEL = "__global__ void k(int *a) { a[0] = 1; }"


def test_one_function_replaces_its_namesake_and_the_rest_stays():
    merged = merge_functions(TWO, "void second(int *a) { a[1] = 2 + 0; }\n", "cpp")
    assert merged == TWO.replace("void second(int *a) {\n  a[1] = 2;\n}", "void second(int *a) { a[1] = 2 + 0; }")


def test_helpers_go_along_with_the_function_they_stand_before():
    block = "constexpr int T = 8;\nstatic int twice(int x) { return 2 * x; }\nvoid first(int *a) { a[0] = twice(T); }"
    merged = merge_functions(TWO, block, "cpp")
    assert merged.startswith("static const int N = 4;\n\nconstexpr int T = 8;\nstatic int twice")
    assert merged.count("void second") == 1
    assert merged.count("void first") == 1


def test_both_functions_are_replaced_where_they_stand_whatever_their_order_in_the_block():
    merged = merge_functions(TWO, "void second(int *a) { a[1] = 9; }\nvoid first(int *a) { a[0] = 8; }", "cpp")
    assert merged.index("a[0] = 8") < merged.index("a[1] = 9")
    assert merged.startswith("static const int N = 4;")


def test_a_block_with_all_functions_and_other_declarations_is_the_whole_region():
    block = "static const int N = 8;\nvoid first(int *a) {}\nvoid second(int *a) {}"
    assert merge_functions(TWO, block, "cpp") == block


@pytest.mark.parametrize(("region", "block", "language"), [
    (KERNEL, "__device__ int h() { return 1; }\n" + KERNEL.replace("1", "h()"), "cuda"),
    ("  for (int i = 0; i < n; ++i) a[i] = 0;", "  memset(a, 0, n * sizeof *a);", "cpp"),
    (TWO, "void third(int *a) {}", "cpp"),
    (TWO + "void first(long *a) {}\n", "void first(int *a) {}", "cpp"),
])  # fmt: skip
def test_other_blocks_are_the_whole_region(region, block, language):
    assert merge_functions(region, block, language) == block


def test_a_main_that_was_added_to_try_the_code_is_dropped():
    block = "#include <cmath>\n" + KERNEL + "\nint main() {\n  return 0;\n}\n"
    assert merge_functions(KERNEL, block, "cuda") == "#include <cmath>\n" + KERNEL
    assert "int main" in merge_functions("int main() { return 1; }", "int main() { return 0; }", "cpp")


def test_templates_are_replaced_with_their_header():
    region = "template <typename T>\nT id(T x) { return x; }\nint other() { return 0; }\n"
    merged = merge_functions(region, "template <typename T>\nT id(T x) {\n  return T(x);\n}", "cpp")
    assert merged.count("template") == 1
    assert "int other()" in merged


def test_bytes_that_are_not_utf8_survive():
    region = "// \udce4\nint f() { return 1; }\nint g() { return 2; }"
    assert merge_functions(region, "int g() { return 3; }", "cpp").startswith("// \udce4\nint f")


def test_only_closed_blocks_count_and_a_call_closes_one():
    text = "```cpp\nint a;\n<tool_call>{}</tool_call>\n```cuda region=k\nint b;\n```\n```cpp\nint cut"
    assert [(block.tag, block.region, block.text) for block in fenced(text)] == [
        ("cpp", None, "int a;\n"),
        ("cuda", "k", "int b;\n"),
    ]


def test_a_call_in_a_fence_of_its_own_leaves_the_blocks_around_it_whole():
    call = "```cpp\n<tool_call>\n{}\n</tool_call>\n```\n"
    text = f"```cpp\nint a;\n```\n{call}### Results\n```cpp\nint b;\n```\n{call}prose\n```cpp\nint c;\n```\n"
    assert [block.text for block in fenced(text) if block.text] == ["int a;\n", "int b;\n", "int c;\n"]


REGIONS = {"sweep": "void sweep() {}\n", "norm": "double norm() { return 0; }\n"}


def test_blocks_find_their_regions_by_tag_by_name_and_by_what_they_define():
    tagged = "```sweep\nvoid sweep() { ; }\n```\n```cpp region=norm\ndouble norm() { return 0.0; }\n```"
    assert region_code(tagged, REGIONS, "cpp") == {
        "sweep": "void sweep() { ; }",
        "norm": "double norm() { return 0.0; }",
    }
    assert region_code("```\ndouble norm() { return 1; }\n```", REGIONS, "cpp") == {
        "norm": "double norm() { return 1; }"
    }


def test_the_last_block_of_a_region_wins_and_other_languages_are_passed_over():
    text = "```cpp\nvoid sweep() { 1; }\n```\n```\nvoid sweep() { 2; }\n```\n"
    text += '```bash\nmake\n```\n```json\n{}\n```\n```cpp\n{"name": 1}\n```'
    assert region_code(text, {"sweep": "void sweep() {}"}, "cpp") == {"sweep": "void sweep() { 2; }"}


@pytest.mark.parametrize("text", ["```cpp region=swep\nint x;\n```", "```cpp\nint unrelated;\n```"])
def test_a_block_for_no_region_is_the_models_mistake(text):
    with pytest.raises(ModelMistake, match=r"region.*try: .*(fenced block|region=)"):
        region_code(text, REGIONS, "cpp")


def test_a_region_may_be_named_as_the_file_it_lies_in() -> None:
    assert named_region("src/sweep.cpp", {"sweep": "", "norm": ""}) == "sweep"
    with pytest.raises(ModelMistake, match=r"no region 'grid\.cpp'"):
        named_region("grid.cpp", {"sweep": ""})
