// The most that this machine's cores do: bytes per second by size of the working set, and fused multiply-adds.
//
//     peaks THREADS BYTES...
//
// prints `bytes SIZE RATE` for each size (over all threads together; the best of reading, writing and copying, with plain
// and with streaming stores; bytes read and bytes written both count) and `flops RATE` in single precision. The best of
// several repetitions is kept: a neighbour or a preempted thread can only make one slower.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
constexpr std::size_t WIDTH = 64;
#elif defined(__AVX__)
constexpr std::size_t WIDTH = 32;
#else
constexpr std::size_t WIDTH = 16;
#endif
typedef long long Words __attribute__((vector_size(WIDTH)));
typedef float Floats __attribute__((vector_size(WIDTH)));

constexpr int REPETITIONS = 8;
constexpr std::size_t ENOUGH = std::size_t(8) << 20;   // bytes that a thread moves in one repetition, at least
constexpr std::size_t APART = 1088;                    // between source and target, so that they do not share cache sets

using Clock = std::chrono::steady_clock;

static inline void forget() { asm volatile("" ::: "memory"); }

static inline void stream(Words *to, Words value) {
#if defined(__AVX512F__)
    _mm512_stream_si512((__m512i *)to, (__m512i)value);
#elif defined(__AVX__)
    _mm256_stream_si256((__m256i *)to, (__m256i)value);
#elif defined(__x86_64__)
    _mm_stream_si128((__m128i *)to, (__m128i)value);
#else
    *to = value;
#endif
}

static void read(Words *data, std::size_t bytes) {
    Words seen[8] = {};
    const std::size_t count = bytes / WIDTH;
    for (std::size_t i = 0; i + 8 <= count; i += 8)
        for (int k = 0; k < 8; ++k) seen[k] |= data[i + k];
    for (int k = 0; k < 8; ++k) asm volatile("" ::"x"(seen[k]));
}

template <bool STREAMED> static void write(Words *data, std::size_t bytes) {
    const Words value = Words{} + (long long)bytes;
    for (std::size_t i = 0; i < bytes / WIDTH; ++i) {
        if constexpr (STREAMED) stream(data + i, value);
        else data[i] = value;
    }
}

template <bool STREAMED> static void copy(Words *data, std::size_t bytes) {
    const std::size_t count = bytes / 2 / WIDTH;
    Words *to = data + count + APART / WIDTH;
    for (std::size_t i = 0; i < count; ++i) {
        if constexpr (STREAMED) stream(to + i, data[i]);
        else to[i] = data[i];
    }
}

static void library_copy(Words *data, std::size_t bytes) {
    const std::size_t count = bytes / 2 / WIDTH;
    std::memcpy(data + count + APART / WIDTH, data, count * WIDTH);
}

// Seconds from the first thread's start of `work(thread)` to the last one's end, the best of all repetitions.
template <class Work> static double best(int threads, Work work) {
    std::vector<Clock::time_point> begin(threads), end(threads);
    double least = 1e300;
    for (int repetition = 0; repetition < REPETITIONS; ++repetition) {
        std::atomic<int> waiting{threads};
        auto body = [&](int thread) {
            if (repetition == 0) work(thread, true);
            --waiting;
            while (waiting > 0) std::this_thread::yield();
            begin[thread] = Clock::now();
            work(thread, false);
            end[thread] = Clock::now();
        };
        std::vector<std::thread> others;
        for (int thread = 1; thread < threads; ++thread) others.emplace_back(body, thread);
        body(0);
        for (std::thread &other : others) other.join();
        Clock::time_point first = begin[0], last = end[0];
        for (int thread = 1; thread < threads; ++thread) {
            first = begin[thread] < first ? begin[thread] : first;
            last = end[thread] > last ? end[thread] : last;
        }
        const double seconds = std::chrono::duration<double>(last - first).count();
        least = seconds < least ? seconds : least;
    }
    return least;
}

static double bytes_per_s(int threads, std::size_t size, const std::vector<Words *> &memory) {
    const std::size_t each = size / threads / 1024 * 1024;
    if (each == 0) return 0;
    const std::size_t passes = (ENOUGH + each - 1) / each;
    void (*const kinds[])(Words *, std::size_t) = {read, write<false>, write<true>, copy<false>, copy<true>, library_copy};
    double most = 0;
    for (auto kind : kinds) {
        const double seconds = best(threads, [&](int thread, bool warming) {
            for (std::size_t pass = 0; pass < (warming ? 1 : passes); ++pass) {
                kind(memory[thread], each);
                forget();
            }
        });
        const double rate = double(each) * passes * threads / seconds;
        most = rate > most ? rate : most;
    }
    return most;
}

static double flops_per_s(int threads) {
    constexpr int CHAINS = 10, ROUNDS = 1 << 18;
    const double seconds = best(threads, [](int thread, bool warming) {
        Floats sums[CHAINS], factor = Floats{} + 0.5f, term = Floats{} + float(thread);
        asm volatile("" : "+x"(factor), "+x"(term));
        for (int k = 0; k < CHAINS; ++k) sums[k] = term;
        for (int round = 0; round < (warming ? ROUNDS / 8 : ROUNDS); ++round)
            for (int k = 0; k < CHAINS; ++k) sums[k] = sums[k] * factor + term;
        for (int k = 0; k < CHAINS; ++k) asm volatile("" ::"x"(sums[k]));
    });
    return 2.0 * CHAINS * ROUNDS * (WIDTH / sizeof(float)) * threads / seconds;
}

int main(int count, char **words) {
    const int threads = count > 1 ? std::atoi(words[1]) : 0;
    std::size_t largest = 0;
    for (int i = 2; i < count; ++i) {
        const std::size_t size = std::strtoull(words[i], nullptr, 10);
        largest = size > largest ? size : largest;
    }
    if (threads < 1) return 2;
    std::vector<Words *> memory(threads);
    for (Words *&part : memory) {
        part = (Words *)std::aligned_alloc(4096, (largest / threads + APART + 2 * 4096) / 4096 * 4096);
        if (part == nullptr) return 3;
    }
    best(threads, [&](int thread, bool warming) {
        if (warming) std::memset((void *)memory[thread], 1, largest / threads + APART);  // each thread's pages near it
    });
    for (int i = 2; i < count; ++i) {
        const std::size_t size = std::strtoull(words[i], nullptr, 10);
        std::printf("bytes %zu %.6g\n", size, bytes_per_s(threads, size, memory));
    }
    std::printf("flops %.6g\n", flops_per_s(threads));
}
