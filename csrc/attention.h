// The interface of the native kernels: plain pointers and strides, independent of torch and of instruction sets.
//
// Attention runs over tiles. A layout lists, for every head and tile of queries, the tiles of keys that have an edge in
// them; each entry is full or points to a bit mask. Global tokens, which see all tokens and are seen by all, are added.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace longbird {

enum class DType : int { f32 = 0, bf16 = 1, f16 = 2 };

// A tensor such as q: elements are indexed by sequence, head, token and channel, with contiguous channels. Strides
// count elements.
struct Tensor {
    void* data = nullptr;
    DType dtype = DType::f32;
    int64_t sequence_stride = 0, head_stride = 0, token_stride = 0;
};

// One side of a layout cut into tiles: tile t holds positions starts[t] .. starts[t+1]; `order` maps positions to
// tokens.
struct Tiling {
    int32_t count = 0;
    const int32_t* starts = nullptr;
    const int32_t* order = nullptr;  // nullptr: position p is token p
    int32_t step = 1;                // distance between the tokens of a tile (0: irregular); makes relative bias cheap
    int32_t tokens() const { return starts[count]; }
};

struct Layout {
    int32_t tile_size = 0;
    Tiling queries, keys;
    int64_t head_rows = 0;  // distance between the row pointers of two heads, 0 if all heads share them
    const int64_t* row_ptr = nullptr;
    const int32_t* columns = nullptr;
    const int32_t* mask_ids = nullptr;
    const uint8_t* masks = nullptr;  // [pool][tile_size keys][mask_bytes]; bit i of the row of a key: query i sees it
    int32_t mask_bytes = 0;
};

struct Sequence {
    const Layout* layout = nullptr;
    int64_t batch = 0;               // first index into the tensors (0 for packed ones)
    int64_t token_start = 0;         // first token in packed tensors (0 for padded ones)
    int64_t number = 0;              // number of the sequence in the call, for dropout
    std::vector<int32_t> globals;    // global tokens, ascending
    std::vector<uint8_t> is_global;  // a flag for each token; empty if there are no globals
};

struct Problem {
    int64_t heads = 0, head_dim = 0;
    float scale = 1.0f;
    std::vector<Sequence> sequences;
    Tensor q, k, v, out;
    Tensor lse;                   // float32 [sequence, head, token]
    const float* bias = nullptr;  // [heads, 2 * bias_radius + 1], or none
    int64_t bias_radius = 0;
    double dropout_p = 0.0;
    uint64_t dropout_seed = 0;
    // Backward only.
    Tensor grad_out, grad_lse, grad_q, grad_k, grad_v;  // grad_lse.data may be null
    float* grad_bias = nullptr;
};

// How to run: the calling thread calls `poll` from time to time, and stops early if it returns true.
struct Runtime {
    int threads = 1;
    std::function<bool()> poll;
};

// Both return false if poll stopped them.
bool forward(const Problem& problem, const Runtime& runtime);
bool backward(const Problem& problem, const Runtime& runtime);

// Peak number of bytes that a call allocates. Only the dtypes and strides of the tensors are used, so their data may be
// null. With several threads it is an upper bound, because what they allocate at the same time varies.
int64_t work_space(const Problem& problem, int threads, bool backward);

// out = gelu(x), or if a gradient is given, out = grad_out * gelu'(x), for `count` contiguous floats.
void gelu(const float* x, const float* grad_out, float* out, int64_t count, int threads);

// Runs body(thread) on `threads` threads; the caller is number 0.
void run_on_threads(int threads, const std::function<void(int)>& body);
// Sets the address of GOMP_parallel in the OpenMP runtime that the host program (torch) uses; 0 means plain threads.
void use_openmp(void* gomp_parallel);

const char* isa();                // the instruction set in use
std::vector<const char*> isas();  // those that this build and this machine support, best first
bool use_isa(const char* name);   // false if it is not one of them

// One set of kernels for each instruction set, filled in by attention_<isa>.cpp.
struct Kernels {
    const char* name;
    bool (*forward)(const Problem&, const Runtime&);
    bool (*backward)(const Problem&, const Runtime&);
    int64_t (*work_space)(const Problem&, int, bool);
    void (*gelu)(const float*, const float*, float*, int64_t, int);
};

}  // namespace longbird
