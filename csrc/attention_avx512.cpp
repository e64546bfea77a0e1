#define LONGBIRD_LANES 16
#include "attention-inl.h"

namespace longbird {
extern const Kernels kernels_avx512;
const Kernels kernels_avx512 = {"avx512", run_forward, run_backward};
}  // namespace longbird
