"""The names that screening knows: what a candidate may include and call, and what it may not, with the reason for each.

Lists, not logic. A name in `_REFUSED` is refused wherever it stands; one in `_REFUSED_WORDS` is also an ordinary word,
so only where nothing in the region declares it. Both are allowed as often as the original region had them.
"""

from __future__ import annotations

import re

_OUTPUT = "writes output"
_FILES = "reaches files or devices"
_PROCESS = "acts on the process"
_CLOCK = "reads or steers a clock"
_THREAD = "starts or steers threads, which outlive the region"
_STATE = "is state that outlives a call"
_STACK = "reaches into the stack or the loaded program"
_PROMISE = "lets the compiler drop checks of the code around the region"

_REFUSED = {
    _OUTPUT: re.compile(
        r"_*v?[dfs]?n?w?printf\w*|_*v?asprintf\w*|f?putw?s(?:_unlocked)?|putchar\w*|f?putw?c\w*|fwrite\w*|perror|psignal|w?c(?:out|err|log|in)"
        r"|w?ostream|println|vprint_\w+|v?syslog|assert|__assert\w*|v?(?:err|warn)x|error_at_line|format_to\w*|fflush\w*"
        r"|setv?buf\w*|std(?:in|out|err)"
    ),
    _FILES: re.compile(
        r"f?d?re?open\w*|f?open(?:64|at|at64|2)|fopen\w*|fdopen\w*|creat(?:64)?|fclose\w*|fread\w*|v?[fs]?w?scanf|getline|getdelim"
        r"|fgets\w*|getw?char\w*|f?getc|p?readv?\w*64|pread\w*|readv|readlink\w*|pwrite\w*|writev|ioctl|fcntl\w*|mmap(?:64)?"
        r"|munmap|mremap|mprotect|msync|madvise|memfd_\w+|shm(?:at|ctl|dt|get|_open|_unlink)|sem(?:_\w+|get|op|ctl)|mq_\w+|msg(?:get|snd|rcv)"
        r"|w?[io]?fstream|basic_\w*(?:stream|buf)\w*|w?filebuf|[io]?stringstream|filesystem|unlink(?:at)?|mkdir\w*|rmdir"
        r"|symlink\w*|opendir|readdir\w*|f?chdir|f?chmod\w*|f?chown\w*|f?truncate\w*|sendfile\w*|vmsplice|process_vm_\w+"
        r"|copy_file_range|mkfifo\w*|mkn?o?s?temp\w*|tmpfile\w*|tmpnam\w*|recvmsg|sendmsg|sendto|recvfrom|random_device"
        r"|fileno\w*|getrandom|getentropy|inotify\w*|epoll\w*|eventfd|(?:link|rename|mknod|futimes?|utimens)at2?|umask|lockf|flock"
        r"|e(?:uid)?access|faccessat2?|[fl]?stat(?:64|at|vfs)|fstat|utimes?|mincore|mlock\w*|munlock\w*|posix_(?:madvise|fa\w+)"
    ),
    _PROCESS: re.compile(
        r"_*exit|_Exit|quick_exit|__?cxa_\w+|at_?exit|at_quick_exit|on_exit|abort|set_terminate|set_new_handler|set_unexpected"
        r"|v?fork|exec[lv]\w*|fexecve|posix_spawn\w*|popen|pclose|wait(?:pid|id|3|4)|sig(?:action|procmask|longjmp|setjmp|queue"
        r"|altstack|suspend|pending|wait\w*|block|setmask|getmask|hold|relse|ignore|set|pause|interrupt|stack|vec|return|(?:add|del|empty|fill)set)"
        r"|__sig\w+|[gs]etpriority|get_(?:terminate|new_handler|unexpected)|_?longjmp|_?setjmp|ptrace|prctl|arch_prctl|syscall|t?g?killp?g?|dl(?:open|m?open"
        r"|v?sym|addr1?|close|info|iterate_\w+)|(?:secure_)?getenv|setenv|putenv|unsetenv|clearenv|_*environ|setr?e?[ug]id"
        r"|seccomp|personality|[gs]etrlimit\w*|getrusage|get(?:p|pp|t)id|mallopt|mallinfo2?|malloc_(?:usable_size|trim|stats|info|[gs]et_state|zone_\w+|\w*hook)|__\w+_hook|__trap|__brkpt|_Unwind_\w+"
        r"|__builtin_(?:v?trap|debugtrap|abort|exit|longjmp|setjmp)|_start|_init|_fini|main"
    ),
    _CLOCK: re.compile(
        r"clock(?:32|64|_\w+)|__clock\w*|__?rdtscp?|__rdpmc|_rdpmc|gettimeofday|ftime|timespec\w*|timeval|timer_(?:t|create|delete|[gs]ettime|getoverrun)|timerfd\w*"
        r"|[gs]etitimer|u?nanosleep|usleep|__nanosleep|chrono|steady_clock|system_clock|high_resolution_clock"
        r"|ualarm|asctime\w*|mktime|omp_get_w(?:time|tick)|MPI_W(?:time|tick)|__builtin_readcyclecounter|globaltimer\w*|wall_clock64|settimeofday"
        r"|adjtimex?|difftime|this_thread|sleep_(?:for|until)|strftime|localtime\w*|gmtime\w*"
    ),
    _THREAD: re.compile(
        r"jthread|pthread_\w+|packaged_task|shared_future|thrd_\w+|sched_\w+|call_once|once_flag|co_(?:await|yield|return)"
        r"|io_uring\w*|aio_\w+|condition_variable\w*"
    ),
    _STATE: re.compile(
        r"thread_local|_Thread_local|__thread|__managed__|s?rand(?:48|om)?_r|[dejlmn]rand48|s?rand48|seed48|srand(?:om)?|initstate"
        r"|setstate|errno|__errno_location|strtok\w*|setlocale|newlocale|uselocale|localeconv|signgam|tzname|tzset|optarg|optind"
        r"|opterr|s?brk|get_temporary_buffer|[gs]et_default_resource|new_delete_resource|program_invocation\w*|__progname\w*"
        r"|__libc_\w+|_dl_\w+|_rtld\w*|_IO_\w+|_mm_[gs]etcsr|_MM_[GS]ET_\w+|fese\w+|fe(?:en|dis)ableexcept|feraiseexcept"
        r"|fe(?:hold|clear|test)except|fe[gs]et(?:env|exceptflag)|[eq]?q?[ef]cvt(?:_r)?|l64a|strerror\w*|strsignal|h(?:create|search|destroy)\w*"
        r"|_x[gs]etbv\w*|_(?:rd|wr)pkru\w*|__(?:read|write)eflags|_(?:get|inc|rd|save|set|clr)ssp\w*|_get_ssp|_rd(?:rand|seed|pid)\w*"
        r"|_?_?u?(?:monitor|mwait)x?|_(?:umonitor|umwait|tpause|ptwrite\w*)|xalloc|sync_with_stdio|random_shuffle"
        r"|(?:set|get)key|encrypt|mb(?:len|towc|rlen|rtowc|srtowcs)|wctomb|lcong48|feupdateenv|_controlfp\w*|_(?:read|write)[fg]sbase\w*|_f?x(?:save|rstor)\w*|omp_set_\w+|kmp_set_\w+|omp_pause_\w+"
    ),
    _STACK: re.compile(
        r"__builtin_(?:return_address|frame_address|dwarf_\w+|apply\w*|va_\w+|extract_return_addr|unwind_\w+|eh_\w+|stack_\w+|alloca\w*)"
        r"|alloca|_AddressOfReturnAddress|_ReturnAddress|backtrace\w*|[gs]etcontext|makecontext|swapcontext|_GLOBAL_OFFSET_TABLE_"
        r"|__dso_handle|__ehdr_start|__data_start|data_start|__bss_start|__executable_start|_end|_etext|_edata"
        r"|__(?:pre)?init_array\w*|__fini_array\w*|_DYNAMIC|link_map|_r_debug"
    ),
    _PROMISE: re.compile(r"__builtin_unreachable|__builtin_assume|__assume|unreachable|_assume|__builtin_nvvm_assume"),
}

_REFUSED_WORDS = {
    _OUTPUT: re.compile(r"print|err|warn"),
    _FILES: re.compile(
        r"read|write|open|close|remove|rename|link|dup[23]?|pipe2?|access|[lf]?stat|p?select|p?poll|send|recv|[lf]seek|rewind"
        r"|ftell|bind|listen|accept|u?mount|splice|tee|socket|connect"
    ),
    _PROCESS: re.compile(r"kill|raise|signal|wait|alarm|pause|clone|nice|daemon|system|terminate"),
    _CLOCK: re.compile(r"time|times|clock|sleep|ctime"),
    _STATE: re.compile(r"daylight|timezone|end|edata|etext|rand|random|locale"),
    _THREAD: re.compile(r"future|thread|async|promise"),
}

ASSEMBLY = frozenset({"asm", "__asm__", "__asm"})

LIBRARY_FUNCTIONS = re.compile(
    r"[cm]alloc|realloc|free|aligned_alloc|posix_memalign|mem(?:cpy|move|set|cmp|chr)|str(?:n?cmp|n?cpy|len|cat|chr|str|tod|tof"
    r"|tol|toul)|ato[fil]|qsort|bsearch|l?abs|fabsf?|sqrtf?|powf?|expf?|exp2|expm1|log(?:f|2|10|1p)?|a?(?:sin|cos|tan)h?f?|atan2"
    r"|floorf?|ceilf?|l?l?round|trunc|fminf?|fmaxf?|fmaf?|is(?:nan|inf|finite)|hypot|cbrt|erfc?|[lt]gamma|ldexp|frexp|modf"
    r"|fmod|l?l?rint|nearbyint|swap|operator"
)
"""Functions that the rest of the program may call without this file showing it: a region may not define them."""

DEVICE_CALL = re.compile(
    r"(?:cuda|hip|cu|nvtx|nvml|cupti|nccl|rccl|CUPTI|HIP)[A-Z]\w*|(?:cu|hip|roc)(?:blas|fft|sparse|solver|dnn|tensor|rand)[A-Z]\w*"
    r"|thrust"
)
DEVICE_CALLS_ALLOWED = re.compile(
    r"(?:cuda|hip)(?:FuncSetAttribute|FuncAttribute\w+|FuncSetCacheConfig|FuncCachePrefer\w+|Shared[mM]em\w+|Occupancy\w+"
    r"|GetDevice|DeviceGetAttribute|DevAttr\w+|DeviceAttribute\w+|GetDeviceProperties|DeviceProp(?:_t)?|DeviceSynchronize"
    r"|PeekAtLastError|Success|Error(?:_t)?|GetErrorString|Memset(?:Async)?|Stream_t"
    r"|FuncGetAttributes|FuncAttributes|TextureObject_t|SurfaceObject_t|Extent|Pos)"
    r"|HIP_(?:vector_type|KERNEL_NAME|DYNAMIC_SHARED)|hip\w*Complex|cuC\w+|cu(?:Float|Double)?Complex"
)

KEPT_CALLS = re.compile(
    r"(?:cuda|hip)(?:(?:Device|Stream|Event|Thread)Synchronize|StreamWaitEvent|GetLastError|PeekAtLastError)"
)
"""Calls that wait for the device or ask whether it failed: where the original makes one, a candidate makes it too."""

_BUILTINS_ALLOWED = re.compile(
    r"__builtin_(?:assume_aligned|cpu_(?:supports|init|is)|expect(?:_with_probability)?|prefetch|mem(?:cpy|set|move)|offsetof"
    r"|popcount\w*|parity\w*|c[lt]z\w*|ffs\w*|bswap\d+|rotate\w+|bitreverse\d+|(?:add|sub|mul)\w*_overflow\w*|shuffle\w*"
    r"|convertvector|reduce_\w+|elementwise_\w+|bit_cast|is_constant_evaluated|constant_p|types_compatible_p|choose_expr"
    r"|signbit\w*|copysign\w*|isnan|isinf\w*|isfinite|isnormal|isgreater\w*|isless\w*|nans?[fl]?|inf[fl]?|huge_val[fl]?"
    r"|fm[as][fl]?|f?abs[fl]?|l?l?abs|sqrt[fl]?|f(?:min|max|mod)[fl]?|(?:floor|ceil|trunc|rint|round|nearbyint)[fl]?"
    r"|(?:exp2?|log2?|log10|sin|cos|tan|pow|cbrt|hypot|tanh?|erf)[fl]?|l?l?round[fl]?|ldexp[fl]?|powi[fl]?"
    r"|ia32_(?!\w*(?:rdt|rdpmc|rdrand|rdseed|rdpid|xgetbv|xsetbv|ssp|csr|base|pkru|f(?:n?st|ld|n?clex|n?save|rstor)|xsave|xrstor|xbegin|xend|xabort|xtest|sys|monitor|wait|eflags))\w+"
    r"|nontemporal_(?:load|store)|amdgcn_(?!s_(?:memtime|memrealtime|sleep|trap|sethalt))\w+|nvvm_(?!read_ptx_sreg_clock)\w+"
    r"|arm_neon\w+|aarch64_simd\w+)"
)

HEADERS_ALLOWED = re.compile(
    r"<(?:math|stdint|stddef|stdlib|string|limits|float)\.h>|<c(?:math|stdint|stddef|stdlib|string|limits|float)>"
    r"|<(?:algorithm|numeric|array|vector|type_traits|utility|tuple|functional|bit|new|memory|iterator|span|complex|limits"
    r"|initializer_list|concepts|numbers|ratio|valarray|bitset|optional|simd|experimental/simd)>"
    r"|<(?:[extpsnw]mm|im|amm|x86|imm)intrin\.h>|<arm_(?:neon|sve|acle)\.h>|<omp\.h>"
    r'|[<"](?:cuda_(?:fp16|bf16|fp8|fp6|fp4|pipeline|pipeline_primitives|awbarrier|runtime|runtime_api)|mma|cooperative_groups'
    r"|cooperative_groups/(?:reduce|scan|memcpy_async)|device_launch_parameters|vector_types|vector_functions|math_constants"
    r'|sm_\d\d_intrinsics|cuComplex)\.h[>"]'
    r"|<cuda/(?:pipeline|barrier|atomic|ptx|functional|annotated_ptr|cmath|std/(?:array|cmath|cstdint|cstddef|limits|utility"
    r"|type_traits|tuple|complex|bit|span|algorithm|numeric|atomic|barrier|functional|cstring|concepts))>"
    r"|<cub/(?:cub|(?:block|warp|thread)/\w+)\.cuh>"
    r"|<hip/hip_(?:runtime|fp16|bf16|bfloat16|cooperative_groups|vector_types|complex|math_constants)\.h>"
    r"|<rocwmma/rocwmma\.hpp>"
)

PRAGMAS_ALLOWED = re.compile(
    r"(?:no)?unroll(?: ?\(? ?[\w ]+\)?)?|unroll ?\([^()]*\)|ivdep|simd|vector (?:always|aligned|unaligned|nontemporal)"
    r"|GCC (?:ivdep|unroll ?\(?\w+\)?|novector|diagnostic .*)|clang (?:loop .*|diagnostic .*|fp contract ?\(\w+\))"
    r"|(?:nv_)?diag_\w+ .*|STDC FP_CONTRACT \w+"
    r"|omp (?!threadprivate|groupprivate|requires|allocate|begin|end|declare (?:target|variant|mapper)|assumes|interop"
    r"|dispatch|error|nothing|metadirective|depobj)(?!.*\b(?:detach|device_num)\b)(?!target.*\bnowait\b).*"
)

ATTRIBUTES_ALLOWED = re.compile(
    r"aligned|always_inline|noinline|hot|cold|flatten|vector_size|ext_vector_type|target|target_clones|assume_aligned|unused"
    r"|maybe_unused|may_alias|packed|nothrow|likely|unlikely|fallthrough|nodiscard|gnu|clang|deprecated|no_unique_address"
    r"|restrict|amdgpu_flat_work_group_size|amdgpu_waves_per_eu|amdgpu_num_vgpr|artificial|gnu_inline|device|host|global"
    r"|shared|forceinline|launch_bounds|noclone|noipa"
)

PTX_ALLOWED = re.compile(
    r"(?:@!?%?\w+ )?(?:ld|ldu|st|cp|prefetch|prefetchu|ldmatrix|stmatrix|mma|wmma|wgmma|fma|mad|mad24|mul|mul24|addc?|subc?"
    r"|min|max|neg|abs|rcp|rsqrt|sqrt|ex2|lg2|sin|cos|tanh|div|rem|cvt|cvta|mov|shfl|vote|match|activemask|redux|bar|barrier"
    r"|membar|fence|mbarrier|lop3|and|x?or|c?not|sh[lrf]|prmt|bfe|bfi|bfind|brev|popc|clz|fns|selp|setp|set|slct|sad|dp[24]a"
    r"|vadd4?|vmax4|vmin4|vabsdiff4|isspacep|elect|griddepcontrol|createpolicy|applypriority|copysign|testp|atom|red|tex|tld4"
    r"|suld|sust|szext|bmsk|getctarank|mapa)\.[\w.:]+(?: .*)?|\.reg ?\.\w+ [\w%,<> ]+"
)
PTX_REFUSED = re.compile(
    r"%?clock|globaltimer|%pm\d|%envreg|\btrap\b|\bexit\b|\bbra\b|\bcall\b|\.file|\.section|\.global \."
)


def refused_reason(name: str) -> str | None:
    """Why a name may not stand in a region that did not have it, or None where it may."""
    for reason, pattern in _REFUSED.items():
        if pattern.fullmatch(name):
            return reason
    if name.startswith("__builtin_") and not _BUILTINS_ALLOWED.fullmatch(name):
        return "is a compiler builtin that is not on the list"
    return None


def refused_word(name: str) -> str | None:
    """Why an ordinary word may not stand for something outside, or None where it may."""
    return next((why for why, words in _REFUSED_WORDS.items() if words.fullmatch(name.lstrip("_"))), None)
