// The Python module longbird._native, which takes addresses and strides. Its only callers, core/operator/native.py and
// models/layers/gelu.py, have checked them.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "attention.h"

namespace nb = nanobind;
using namespace longbird;

namespace {

template <class T>
using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;

// A layout, and the arrays that it points into.
struct OwnedLayout {
    Array<int32_t> query_starts, query_order, key_starts, key_order, columns, mask_ids;
    Array<int64_t> row_ptr;
    Array<uint8_t> masks;
    Layout layout;
};

Tiling tiling(const Array<int32_t>& starts, const Array<int32_t>& order, int32_t step) {
    return {(int32_t)starts.size() - 1, starts.data(), order.size() ? order.data() : nullptr, step};
}

OwnedLayout* make_layout(int32_t tile_size, Array<int32_t> query_starts, Array<int32_t> query_order, int32_t query_step,
                         Array<int32_t> key_starts, Array<int32_t> key_order, int32_t key_step, Array<int64_t> row_ptr,
                         Array<int32_t> columns, Array<int32_t> mask_ids, Array<uint8_t> masks) {
    auto* owned =
        new OwnedLayout{query_starts, query_order, key_starts, key_order, columns, mask_ids, row_ptr, masks, {}};
    Layout& layout = owned->layout;
    layout.tile_size = tile_size;
    layout.queries = tiling(query_starts, query_order, query_step);
    layout.keys = tiling(key_starts, key_order, key_step);
    layout.head_rows = row_ptr.shape(0) > 1 ? (int64_t)row_ptr.shape(1) : 0;
    layout.row_ptr = row_ptr.data();
    layout.columns = columns.data();
    layout.mask_ids = mask_ids.data();
    layout.masks = masks.data();
    layout.mask_bytes = (tile_size + 7) / 8;
    return owned;
}

// Called by the calling thread from time to time: was Ctrl-C pressed?
bool interrupted() {
    nb::gil_scoped_acquire gil;
    return PyErr_CheckSignals() != 0;
}

using Kernel = bool (*)(const Problem&, const Runtime&);

void run(Kernel kernel, const Problem& problem, int threads) {
    bool finished;
    {
        nb::gil_scoped_release release;
        finished = kernel(problem, Runtime{threads, interrupted});
    }
    if (!finished) throw nb::python_error();
}

void* pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

// Increase this number, here and in core/operator/native.py, with every change to what Python sees: an extension that
// was built before the change is then refused with a message instead of failing at an arbitrary place.
constexpr int INTERFACE = 1;

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // layouts are kept by caches in Python that outlive this module
    m.doc() = "Native kernels of longbird. Use longbird.attention.";
    m.attr("INTERFACE") = INTERFACE;

    nb::class_<OwnedLayout>(m, "Layout");
    m.def("layout", &make_layout, nb::rv_policy::take_ownership);

    nb::class_<Tensor>(m, "Tensor")
        .def("__init__", [](Tensor* t, uintptr_t address, int dtype, int64_t sequence_stride, int64_t head_stride,
                            int64_t token_stride) {
            new (t) Tensor{pointer(address), (DType)dtype, sequence_stride, head_stride, token_stride};
        });

    nb::class_<Problem>(m, "Problem")
        .def(nb::init<>())
        .def_rw("heads", &Problem::heads)
        .def_rw("head_dim", &Problem::head_dim)
        .def_rw("scale", &Problem::scale)
        .def_rw("q", &Problem::q)
        .def_rw("k", &Problem::k)
        .def_rw("v", &Problem::v)
        .def_rw("out", &Problem::out)
        .def_rw("lse", &Problem::lse)
        .def_rw("grad_out", &Problem::grad_out)
        .def_rw("grad_lse", &Problem::grad_lse)
        .def_rw("grad_q", &Problem::grad_q)
        .def_rw("grad_k", &Problem::grad_k)
        .def_rw("grad_v", &Problem::grad_v)
        .def_rw("dropout_p", &Problem::dropout_p)
        .def_rw("dropout_seed", &Problem::dropout_seed)
        .def("set_bias",
             [](Problem& p, uintptr_t bias, uintptr_t grad_bias, int64_t radius) {
                 p.bias = (const float*)pointer(bias);
                 p.grad_bias = (float*)pointer(grad_bias);
                 p.bias_radius = radius;
             })
        .def(
            "add_sequence",
            [](Problem& p, const OwnedLayout& layout, int64_t number, int64_t batch, int64_t token_start,
               Array<int32_t> globals) {
                Sequence seq;
                seq.layout = &layout.layout;
                seq.batch = batch;
                seq.token_start = token_start;
                seq.number = number;
                if (globals.size()) {
                    seq.globals.assign(globals.data(), globals.data() + globals.size());
                    seq.is_global.assign(layout.layout.keys.tokens(), 0);
                    for (int32_t token : seq.globals) seq.is_global[token] = 1;
                }
                p.sequences.push_back(std::move(seq));
            },
            nb::keep_alive<1, 2>());

    m.def("forward", [](const Problem& p, int threads) { run(forward, p, threads); });
    m.def("backward", [](const Problem& p, int threads) { run(backward, p, threads); });
    m.def("work_space", [](const Problem& p, int threads, bool backward) { return work_space(p, threads, backward); });
    m.def("gelu", [](uintptr_t x, uintptr_t grad_out, uintptr_t out, int64_t count, int threads) {
        nb::gil_scoped_release release;
        gelu((const float*)pointer(x), (const float*)pointer(grad_out), (float*)pointer(out), count, threads);
    });
    m.def("use_openmp", [](uintptr_t address) { use_openmp(pointer(address)); });
    m.def("isa", [] { return std::string(isa()); });
    m.def("isas", [] {
        std::vector<std::string> names;
        for (const char* name : isas()) names.emplace_back(name);
        return names;
    });
    m.def("use_isa", [](const std::string& name) {
        if (!use_isa(name.c_str())) throw nb::value_error("no such instruction set here");
    });
}
