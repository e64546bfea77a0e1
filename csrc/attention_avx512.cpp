#define LONGBIRD_LANES 16
#include "kernels/gelu.h"
#include "kernels/work.h"

namespace longbird {
extern const Kernels kernels_avx512;
const Kernels kernels_avx512 = {"avx512", run_forward, run_backward, count_work_space, run_gelu};
}  // namespace longbird
