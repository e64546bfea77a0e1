// A test is a function with a name. Every file of tests is compiled once for each instruction set, with LONGBIRD_ISA its
// name and LONGBIRD_LANES its lanes; `driver` runs them all.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "../attention.h"

#define LONGBIRD_PASTE(a, b) a##b
#define LONGBIRD_KERNELS_OF(isa) LONGBIRD_PASTE(kernels_, isa)
#define LONGBIRD_TEXT(x) #x
#define LONGBIRD_TEXT_OF(x) LONGBIRD_TEXT(x)

struct Test {
    const char *name, *isa;
    void (*run)();
};
bool add_test(Test test);

#define TEST(name)                                                                                             \
    static void name();                                                                                        \
    [[maybe_unused]] static const bool added_##name = add_test({#name, LONGBIRD_TEXT_OF(LONGBIRD_ISA), name}); \
    static void name()

// The test continues after a failure, so that all failures are reported.
void fail(const char* file, int line, const std::string& what);
#define CHECK(condition) \
    if (!(condition)) fail(__FILE__, __LINE__, #condition)
#define CHECK_CLOSE(got, expected, tolerance) check_close(__FILE__, __LINE__, #got, got, expected, tolerance)

// The largest difference between two lists. It is infinite if their lengths differ, or if only one has a NaN or an
// infinity at some place.
double largest_error(const std::vector<float>& got, const std::vector<double>& expected);
// Whether the difference is within a tolerance, relative to the largest finite expected number, or to 1.
bool is_close(const std::vector<float>& got, const std::vector<double>& expected, double tolerance);
void check_close(const char* file, int line, const char* what, const std::vector<float>& got,
                 const std::vector<double>& expected, double tolerance);

// The peak number of bytes that a call allocated, according to the sanitizer.
int64_t peak_allocation(const std::function<void()>& call);

int random_problems();  // number of problems that a test draws

#ifdef LONGBIRD_ISA
namespace longbird {
extern const Kernels LONGBIRD_KERNELS_OF(LONGBIRD_ISA);
}

namespace {

const longbird::Kernels& kernels = longbird::LONGBIRD_KERNELS_OF(LONGBIRD_ISA);

// Random numbers that are the same in every run and on every machine.
struct Random {
    std::mt19937 bits;
    explicit Random(unsigned seed) : bits(seed) {}
    int integer(int low, int high) { return low + (int)(bits() % (unsigned)(high - low + 1)); }
    bool chance(double p) { return bits() < p * 4294967296.0; }
    // A sum of four uniform numbers, of mean 0 and variance 1.
    float number() {
        double sum = 0;
        for (int i = 0; i < 4; i++) sum += bits() / 4294967296.0 - 0.5;
        return (float)(sum * 1.7320508);
    }
    std::vector<float> numbers(size_t count) {
        std::vector<float> x(count);
        for (float& value : x) value = number();
        return x;
    }
};

}  // namespace
#endif
