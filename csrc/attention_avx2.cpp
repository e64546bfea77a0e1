#define LONGBIRD_LANES 8
#include "kernels/gelu.h"
#include "kernels/work.h"

namespace longbird {
extern const Kernels kernels_avx2;
const Kernels kernels_avx2 = {"avx2", run_forward, run_backward, count_work_space, run_gelu};
}  // namespace longbird
