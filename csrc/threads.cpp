// Threads for the kernels: those of the OpenMP runtime that torch already uses, or plain ones.
//
// torch's OpenMP workers spin for a while after each parallel region. A second pool would compete with them for the
// cores: measured right after a matrix product, a kernel ran at half speed. A team of the same runtime is already
// awake.
#include <atomic>
#include <thread>

#include "attention.h"

namespace longbird {
namespace {

using GompParallel = void (*)(void (*)(void*), void*, unsigned, unsigned);
std::atomic<GompParallel> gomp_parallel{nullptr};

struct Team {
    const std::function<void(int)>* body;
    std::thread::id caller;
    std::atomic<int> next{1};
};

void run_member(void* data) {
    Team& team = *static_cast<Team*>(data);
    (*team.body)(std::this_thread::get_id() == team.caller ? 0 : team.next++);
}

}  // namespace

void use_openmp(void* address) { gomp_parallel = reinterpret_cast<GompParallel>(address); }

void run_on_threads(int threads, const std::function<void(int)>& body) {
    if (threads <= 1) return body(0);
    if (GompParallel parallel = gomp_parallel) {
        Team team{&body, std::this_thread::get_id()};
        return parallel(run_member, &team, (unsigned)threads, 0);
    }
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; thread++) others.emplace_back(body, thread);
    body(0);
    for (std::thread& other : others) other.join();
}

}  // namespace longbird
