// The time of every CUDA kernel of a process, without counter rights.
//
// The driver loads this library where CUDA_INJECTION64_PATH names it and calls InitializeInjection; from then on CUPTI
// hands over one activity record for each kernel that ran. Durations are gathered by kernel name and written once, at
// exit, to the file that KERNELWRIGHT_KERNEL_TIMES names. A process that ends by a signal or _exit writes nothing.
// Nothing here may make the application fail: every error ends in no file.

// Not <cupti.h>: it also describes every CUDA function's parameters, for which cuda.h must be of the very same version.
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

// The record grew at its end from CUDA to CUDA; what is read here (start, end, name) has stayed where it was since CUDA 9.
#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
#elif CUPTI_API_VERSION >= 18
using KernelRecord = CUpti_ActivityKernel9;
#else
using KernelRecord = CUpti_ActivityKernel4;
#endif

constexpr std::size_t kBufferBytes = 4 << 20;
constexpr std::size_t kDurationsKept = 100000;  // per kernel; beyond it, a uniform sample (reservoir)

struct Kernel {
    std::uint64_t launches = 0;
    std::uint64_t total_ns = 0;
    std::uint64_t min_ns = UINT64_MAX;
    std::uint64_t max_ns = 0;
    std::vector<std::uint64_t> durations_ns;
};

struct State {
    std::mutex mutex;
    std::unordered_map<std::string, Kernel> kernels;
    std::uint64_t dropped = 0;
    std::uint64_t random = 88172645463325252ull;
    std::string path;
    pid_t process = 0;
};

State& state() {
    static State* const one = new State;  // never destroyed: CUPTI's thread may deliver while the process exits
    return *one;
}

std::uint64_t next_random(State& s) {  // xorshift64
    s.random ^= s.random << 13;
    s.random ^= s.random >> 7;
    s.random ^= s.random << 17;
    return s.random;
}

void add(State& s, const char* name, std::uint64_t duration_ns) {
    Kernel& kernel = s.kernels[name];
    ++kernel.launches;
    kernel.total_ns += duration_ns;
    kernel.min_ns = std::min(kernel.min_ns, duration_ns);
    kernel.max_ns = std::max(kernel.max_ns, duration_ns);
    if (kernel.durations_ns.size() < kDurationsKept) {
        kernel.durations_ns.push_back(duration_ns);
    } else if (const std::uint64_t at = next_random(s) % kernel.launches; at < kDurationsKept) {
        kernel.durations_ns[at] = duration_ns;
    }
}

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
    *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
    *size = *buffer ? kBufferBytes : 0;
    *max_records = 0;
}

void CUPTIAPI buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                               std::size_t valid_bytes) {
    State& s = state();
    const std::lock_guard<std::mutex> lock(s.mutex);
    CUpti_Activity* record = nullptr;
    while (valid_bytes > 0 && cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == CUPTI_SUCCESS) {
        if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && record->kind != CUPTI_ACTIVITY_KIND_KERNEL) continue;
        const auto* kernel = reinterpret_cast<const KernelRecord*>(record);
        if (kernel->name && kernel->end > kernel->start) add(s, kernel->name, kernel->end - kernel->start);
    }
    std::size_t dropped = 0;
    if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS) s.dropped += dropped;
    std::free(buffer);
}

std::string readable(const std::string& symbol) {
    int status = 0;
    char* text = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
    const std::string name = status == 0 && text ? text : symbol;
    std::free(text);
    return name;
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const unsigned char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        if (c >= 0x20 && c < 0x7f) out += static_cast<char>(c);
    }
    return out + "\"";
}

std::uint64_t quantile(const std::vector<std::uint64_t>& sorted, double share) {
    return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

void print(std::FILE* out, const std::string& symbol, Kernel& kernel) {
    std::vector<std::uint64_t>& sorted = kernel.durations_ns;
    std::sort(sorted.begin(), sorted.end());
    std::fprintf(out, "{\"name\": %s, \"symbol\": %s, \"launches\": %llu, \"total_ns\": %llu, ", quoted(readable(symbol)).c_str(),
                 quoted(symbol).c_str(), static_cast<unsigned long long>(kernel.launches),
                 static_cast<unsigned long long>(kernel.total_ns));
    std::fprintf(out, "\"min_ns\": %llu, \"p10_ns\": %llu, \"median_ns\": %llu, \"p90_ns\": %llu, \"max_ns\": %llu}",
                 static_cast<unsigned long long>(kernel.min_ns), static_cast<unsigned long long>(quantile(sorted, 0.1)),
                 static_cast<unsigned long long>(quantile(sorted, 0.5)), static_cast<unsigned long long>(quantile(sorted, 0.9)),
                 static_cast<unsigned long long>(kernel.max_ns));
}

// Whole or not at all: written beside the file, then renamed onto it.
void write_file(State& s) {
    const std::lock_guard<std::mutex> lock(s.mutex);
    const std::string temporary = s.path + "." + std::to_string(static_cast<long>(s.process)) + ".part";
    std::FILE* out = std::fopen(temporary.c_str(), "w");
    if (!out) return;
    std::fprintf(out, "{\"schema\": 1, \"dropped\": %llu, \"kernels\": [", static_cast<unsigned long long>(s.dropped));
    const char* separator = "\n";
    for (auto& [symbol, kernel] : s.kernels) {
        std::fputs(separator, out);
        print(out, symbol, kernel);
        separator = ",\n";
    }
    std::fputs("\n]}\n", out);
    const bool whole = !std::ferror(out);
    if (std::fclose(out) == 0 && whole) {
        std::rename(temporary.c_str(), s.path.c_str());
    } else {
        std::remove(temporary.c_str());
    }
}

void at_exit() {
    State& s = state();
    if (getpid() != s.process) return;  // a forked child has inherited the handler, not the device
    cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    write_file(s);
}

// A context that is reset takes its undelivered records with it, so they are fetched first.
void CUPTIAPI before_reset(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void* data) {
    if (static_cast<const CUpti_CallbackData*>(data)->callbackSite == CUPTI_API_ENTER) cuptiActivityFlushAll(0);
}

void watch_resets() {
    CUpti_SubscriberHandle subscriber;
    if (cuptiSubscribe(&subscriber, before_reset, nullptr) != CUPTI_SUCCESS) return;
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaDeviceReset_v3020);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
    State& s = state();
    const char* path = std::getenv("KERNELWRIGHT_KERNEL_TIMES");
    if (!path || !*path || s.process != 0) return 1;
    s.path = path;
    s.process = getpid();
    if (cuptiActivityRegisterCallbacks(buffer_requested, buffer_completed) != CUPTI_SUCCESS) return 1;
    if (cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) != CUPTI_SUCCESS) return 1;
    watch_resets();
    std::atexit(at_exit);
    return 1;
}
