// Runs the tests of every instruction set. Built with the address and undefined-behaviour sanitizers by `make sanitize`. The
// 16-lane kernels are compiled for the current machine (the compiler splits their vectors), so that they also run without
// AVX-512.
//
//   driver [part of a name] [random problems of a test]
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "harness.h"

// Functions of the sanitizer; GCC does not include the header that declares them.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*)(const volatile void*, size_t),
                                                         void (*)(const volatile void*));
extern "C" size_t __sanitizer_get_allocated_size(const volatile void*);

namespace {

std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}

int failures = 0, problems = 40;

std::atomic<int64_t> allocated{0}, most_allocated{0};

void count_allocation(const volatile void*, size_t size) {
    const int64_t now = allocated += (int64_t)size;
    for (int64_t most = most_allocated; now > most && !most_allocated.compare_exchange_weak(most, now);) continue;
}
void count_release(const volatile void* p) {
    if (p) allocated -= (int64_t)__sanitizer_get_allocated_size(p);
}

bool runs_here(const char* isa) {
#if defined(__x86_64__)
    if (!std::strcmp(isa, "avx2"))
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#endif
    return std::strcmp(isa, "avx2") != 0;
}

}  // namespace

bool add_test(Test test) {
    tests().push_back(test);
    return true;
}

void fail(const char* file, int line, const std::string& what) {
    if (failures++ < 10) std::printf("  %s:%d: %s\n", file, line, what.c_str());
}

double largest_error(const std::vector<float>& got, const std::vector<double>& expected) {
    if (got.size() != expected.size()) return INFINITY;
    double largest = 0;
    for (size_t i = 0; i < got.size(); i++) {
        const double a = got[i], b = expected[i];
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        const double error = std::fabs(a - b);
        if (!(error <= largest)) largest = std::isnan(error) ? INFINITY : error;
    }
    return largest;
}

bool is_close(const std::vector<float>& got, const std::vector<double>& expected, double tolerance) {
    double size = 1;
    for (double x : expected)
        if (std::isfinite(x)) size = std::max(size, std::fabs(x));
    return largest_error(got, expected) <= tolerance * size;
}

void check_close(const char* file, int line, const char* what, const std::vector<float>& got,
                 const std::vector<double>& expected, double tolerance) {
    if (is_close(got, expected, tolerance)) return;
    fail(file, line, std::string(what) + " is off by " + std::to_string(largest_error(got, expected)));
}

int64_t peak_allocation(const std::function<void()>& call) {
    const int64_t before = allocated;
    most_allocated = before;
    call();
    return most_allocated - before;
}

int random_problems() { return problems; }

int main(int argc, char** argv) {
    const char* part = argc > 1 ? argv[1] : "";
    if (argc > 2) problems = std::atoi(argv[2]);
    if (!__sanitizer_install_malloc_and_free_hooks(count_allocation, count_release)) return 2;
    int passed = 0, failed = 0, skipped = 0;
    for (const Test& test : tests()) {
        if (!std::strstr(test.name, part)) continue;
        if (!runs_here(test.isa)) {
            skipped++;
            continue;
        }
        failures = 0;
        test.run();
        if (!failures) {
            passed++;
            continue;
        }
        failed++;
        std::printf("%s failed on %s: %d checks\n", test.name, test.isa, failures);
    }
    std::printf("%d tests passed, %d failed", passed, failed);
    if (skipped) std::printf(", %d need an instruction set that this machine does not have", skipped);
    std::printf("\n");
    return failed || !passed;
}
