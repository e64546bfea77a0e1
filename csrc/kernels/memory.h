// Work space. All of it is allocated from a Memory. A Memory that only counts allocates nothing, so that the same code
// allocates the work space of a call and predicts its size.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace {

struct Free {
    void operator()(void* p) const { std::free(p); }
};
template <class T>
using Array = std::unique_ptr<T[], Free>;
using Floats = Array<float>;

struct Memory {
    bool only_counts = false;
    int64_t bytes = 0;  // requested so far

    // The array is not initialised, and 64 bytes beyond its end are readable.
    template <class T>
    Array<T> array(int64_t count) {
        const size_t size = ((size_t)count * sizeof(T) + 127) / 64 * 64;
        bytes += (int64_t)size;
        if (only_counts) return nullptr;
        T* p = (T*)std::aligned_alloc(64, size);
        if (!p) throw std::bad_alloc();
        return Array<T>(p);
    }
    Floats floats(int64_t count) { return array<float>(count); }
};

template <class T>
int64_t bytes_of(const std::vector<T>& x) {
    return (int64_t)(x.capacity() * sizeof(T));
}

}  // namespace
