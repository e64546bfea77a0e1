// Selection of the instruction set, which happens once, at the first use. The environment variable LONGBIRD_ISA
// overrides it.
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "attention.h"

namespace longbird {

extern const Kernels kernels_baseline;
#if defined(__x86_64__)
extern const Kernels kernels_avx2, kernels_avx512;
#endif

namespace {

// Best first.
const std::vector<const Kernels*>& available() {
    static const std::vector<const Kernels*> found = [] {
        std::vector<const Kernels*> kernels;
#if defined(__x86_64__)
        __builtin_cpu_init();
        const bool avx2 =
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
        if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
            kernels.push_back(&kernels_avx512);
        if (avx2) kernels.push_back(&kernels_avx2);
#endif
        kernels.push_back(&kernels_baseline);
        return kernels;
    }();
    return found;
}

const Kernels* find(const char* name) {
    for (const Kernels* kernels : available())
        if (std::strcmp(kernels->name, name) == 0) return kernels;
    return nullptr;
}

const Kernels*& chosen() {
    static const Kernels* kernels = [] {
        const char* forced = std::getenv("LONGBIRD_ISA");
        if (!forced || !*forced) return available().front();
        if (const Kernels* found = find(forced)) return found;
        std::string message = std::string("LONGBIRD_ISA is '") + forced + "', but this machine and build have only:";
        for (const Kernels* kernels : available()) message += std::string(" ") + kernels->name;
        throw std::runtime_error(message);
    }();
    return kernels;
}

}  // namespace

bool forward(const Problem& problem, const Runtime& runtime) { return chosen()->forward(problem, runtime); }
bool backward(const Problem& problem, const Runtime& runtime) { return chosen()->backward(problem, runtime); }
int64_t work_space(const Problem& problem, int threads, bool backward) {
    return chosen()->work_space(problem, threads, backward);
}

void gelu(const float* x, const float* grad_out, float* out, int64_t count, int threads) {
    chosen()->gelu(x, grad_out, out, count, threads);
}

const char* isa() { return chosen()->name; }

std::vector<const char*> isas() {
    std::vector<const char*> names;
    for (const Kernels* kernels : available()) names.push_back(kernels->name);
    return names;
}

bool use_isa(const char* name) {
    const Kernels* kernels = find(name);
    if (kernels) chosen() = kernels;
    return kernels != nullptr;
}

}  // namespace longbird
