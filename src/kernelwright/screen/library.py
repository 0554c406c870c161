"""The rule about functions of the C library: a region newly uses only such as compute and keep nothing.

A list of what may be called, and not of what may not: the C library has hundreds of functions with a static buffer, a
mode or a mark of the process behind them (`asctime`, `ecvt`, `umask`, `lockf`, …), and one that is forgotten is a place
where results outlive a call. Names with capitals and names of other namespaces than std are none of the C library's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter

from kernelwright.screen.context import Change, Finding
from kernelwright.screen.pointers import ancestors
from kernelwright.screen.scope import text
from kernelwright.screen.text import Code
from kernelwright.source import walk

_LIBRARY_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_COMPUTE = re.compile(
    # <math.h> and what CUDA and HIP add to it; lgamma sets a global sign
    r"(?:(?:a?(?:sin|cos|tan)h?|(?:sin|cos)pi|sincos(?:pi)?|atan2(?:pi)?|exp(?:2|10|m1)?|log(?:2|10|1p|b)?|ilogb|pow[ni]?|r?sqrt|r?cbrt"
    r"|r?hypot|r?norm[34]?d?|erfc?x?|erfc?inv|normcdf(?:inv)?|tgamma|j[01n]|y[01n]|cyl_bessel_i[01]|ceil|floor|trunc|l?l?round(?:even)?"
    r"|l?l?rint|nearbyint|fma|fm(?:in|ax)(?:imum)?|fdim|fdivide|fmod|remainder|remquo|frexp|ldexp|scalbl?n|modf|next(?:after|toward)"
    r"|copysign|nan|f?abs|l?l?abs|l?l?div|signbit|fpclassify|is(?:nan|inf|finite|normal|unordered|(?:greater|less)(?:equal|greater)?)"
    r"|finite|saturate|recip|mad|mix|step|degrees|radians|native_\w+)(?:f|l|f16|f32|f64|f128)?"
    # memory and text of one's own
    r"|mem(?:cpy|p?cpy|set|move|cmp|r?chr|mem)|str(?:n?len|n?cmp|n?cpy|n?cat|dup|chr|rchr|str|c?spn|to(?:d|f|l|ul|ll|ull))|ato(?:i|f|ll?)"
    r"|[mc]alloc|realloc|free|aligned_alloc|posix_memalign|memalign|qsort|bsearch|to(?:upper|lower)|is(?:digit|alpha|alnum|space|upper|lower)"
    r"|offsetof|ffsl?l?|bswap_\d+|[hn]to[nh][ls]"
    # the C++ library, where it is used without std::
    r"|(?:stable_)?sort|partial_sort|nth_element|fill(?:_n)?|copy(?:_n|_if|_backward)?|move(?:_backward)?|swap(?:_ranges)?|iter_swap|transform"
    r"|(?:transform_)?reduce|accumulate|inner_product|(?:partial|adjacent)_\w+|(?:in|ex)clusive_scan|iota|generate(?:_n)?|for_each(?:_n)?"
    r"|min(?:_element|max|max_element)?|max(?:_element)?|clamp|(?:lower|upper)_bound|binary_search|equal(?:_range)?|mismatch|partition\w*"
    r"|unique(?:_copy)?|reverse(?:_copy)?|rotate(?:_copy)?|merge|inplace_merge|(?:any|all|none)_of|count(?:_if)?|find(?:_if|_if_not)?|search"
    r"|replace(?:_if)?|remove_(?:if|copy\w*)|set_(?:union|intersection|difference)|includes|(?:push|pop|make|sort)_heap|forward|get(?:_if)?"
    r"|make_\w+|tie|c?ref|bind|invoke|apply|distance|advance|next|prev|c?r?begin|c?rend|s?size|empty|data|exchange|as_const|addressof"
    r"|pair|tuple|array|vector|function|span|complex|real|imag|conj|norm|arg|polar|proj|gcd|lcm|midpoint|lerp|bit_\w+|byteswap|popcount"
    r"|count[lr]_(?:zero|one)|rot[lr]|has_single_bit|numeric_limits|plus|minus|multiplies|divides|less|greater|identity|hash|declval|visit"
    r"|string|to_string|stoi|stod|stof|valarray|bitset|optional|variant|initializer_list|unique_ptr|shared_ptr|piecewise_construct|nullopt"
    r"|launder|to_address|construct_at|destroy\w*|uninitialized_\w+|allocator|is_\w+|not_fn|mem_fn|ratio|numbers|pi|[lr]value\w*"
    # compilers, OpenMP, vector units, devices
    r"|__\w+|_(?!IO|dl|exit|obstack|res|environ|m?cleanup|flush)\w+|omp_(?:get|in|is|init|destroy|set_lock|unset|test)\w*|sv\w+|v[a-z0-9]+q?_\w+"
    r"|dim3|u?(?:char|short|int|long|longlong)[1234]|(?:float|double|half|bfloat16)[234]?\w*|u?int\d*(?:_fast\d+|_least\d+|ptr)?_t|s?size_t"
    r"|ptrdiff_t|uint|ulong|uchar|ushort|u?int\d+|[fuib]\d+|h[a-z]+\d?(?:_rn|_sat)?|tex\dd\w*|surf\dd\w*|any|all|ballot|shfl\w*|rcp\w*|ldg|stg|umul\w*|mul\w+"
    r"|this_(?:thread_block|grid|cluster|multi_grid)|tiled_partition|coalesced_threads|labeled_partition|sync|memcpy_async|wait_prior"
    r"|thread_rank|num_threads|thread_block\w*|(?:load|store|fill|mma)_\w+|threads?idx\w*|blocks?idx\w*|warpsize|wave\w*|amd\w*"
    r"|(?:static|reinterpret|const|dynamic)_cast|typeid|restrict|and|or|x?or_eq|and_eq|not|not_eq|bitand|bitor|compl|xor|true|false|nullptr|this|std|cg|cuda|wmma|cub|thrust|cute)"
)  # fmt: skip
_NO_TYPES = {
    "return", "else", "case", "throw", "new", "delete", "and", "or", "not", "co_return", "co_yield", "do", "goto",
}  # fmt: skip
_KEEPING = re.compile(
    r"strerror|strcoll|strxfrm|asctime|mktime|mb(?:len|towc|rlen|rtowc|srtowcs|stowcs|sinit)|wc(?:tomb|rtomb|stombs|srtombs|stok|scoll)"
    r"|btowc|wctob|fe(?:clear|get|raise|set|test|hold|update)\w*|get_terminate|get_new_handler|get_unexpected|current_exception"
    r"|uncaught_exceptions?|lgamma[fl]?|pmr|execution|stacktrace|source_location|generator|atomic_wait\w*|to_wstring"
)


def library_functions_only_compute(change: Change) -> Iterator[Finding]:
    """Names that nothing in sight declares and the original does not use are on the list of what only computes."""
    known: set[str] | None = None
    for node in change.new_names.free:
        name = text(node)
        if node.type != "identifier" or not _LIBRARY_NAME.fullmatch(name) or change.original_has(name):
            continue
        if not _is_reached(node) or _on_device(change, node):
            continue
        scopes = _scopes(node)
        keeps = any(scopes) and _KEEPING.fullmatch(name)
        unlisted = not any(scopes) and not _COMPUTE.fullmatch(name)
        if not (keeps or unlisted):
            continue
        if known is None:
            known = _known(change)
        if name not in known:
            yield Finding(change.new.offset(node), f"{name!r} is not on the list of library functions that only compute",
                          "use <cmath>, <algorithm>, memcpy and their like, or define what it calls")  # fmt: skip


def _is_reached(node: tree_sitter.Node) -> bool:
    """Whether a name is called, or taken alone as a value: a local variable that could not be read is not refused."""
    while (parent := node.parent) is not None and parent.type in ("qualified_identifier", "template_function"):
        node = parent
    if parent is not None and parent.type == "pointer_expression":
        node, parent = parent, parent.parent
    if parent is None:
        return False
    if parent.type == "call_expression":
        return parent.child_by_field_name("function") == node
    return (
        parent.type == "init_declarator"
        and parent.child_by_field_name("value") == node
        and ("auto" in text(parent.parent)[:20] or "function_declarator" in {n.type for n in walk(parent)})
    )


def _on_device(change: Change, node: tree_sitter.Node) -> bool:
    """Whether a name stands in device code, where the C library is not."""
    body = None
    for around in ancestors(node):
        if around.type == "function_definition":
            body = around
    if body is None:
        return False
    start, end = change.new.offset(body), change.new.offset(node)
    # The parser is not shown qualifiers, which stand in front of the function or inside its head.
    before = max((token.at for token in change.new.tokens if token.at < start and token.text in (";", "}")), default=-1)
    heads = [token.text for token in change.new.tokens if before < token.at < end]
    return any(word in ("__global__", "__device__") for word in heads[: heads.index("{") if "{" in heads else None])


def _known(change: Change) -> set[str]:
    outside = change.outside
    return {
        *outside.declared("function", "prototype", "variable", "type", "enumerator", "namespace"),
        *outside.macros,
        *outside.local_variables,
        *outside.helpers,
        *(
            text(node)
            for code in (outside.code, *outside.others)
            for node in walk(code.tree.root_node)
            if node.type == "field_identifier"
        ),
        *(name for code in (outside.code, *outside.others) for name in _heads(code)),
    }


def _heads(code: Code) -> Iterator[str]:
    """Names that look declared, where the parser missed it: behind a type, in front of an opening bracket."""
    for before, name, after in zip(code.tokens, code.tokens[1:], code.tokens[2:], strict=False):
        typed = before.text == ">" or (before.kind == "name" and before.text not in _NO_TYPES)
        if typed and name.kind == "name" and after.text == "(":
            yield name.text


def _scopes(node: tree_sitter.Node) -> list[str]:
    """The namespaces in front of a name, the empty one of `::name` included; an empty list where there is none."""
    scopes, parent = [], node.parent
    while parent is not None and parent.type in ("qualified_identifier", "template_function"):
        if parent.type == "qualified_identifier":
            scopes.append(text(parent.child_by_field_name("scope")))
        parent = parent.parent
    return scopes
