#define LONGBIRD_LANES 4
#include "attention-inl.h"

namespace longbird {
extern const Kernels kernels_baseline;
const Kernels kernels_baseline = {"baseline", run_forward, run_backward};
}  // namespace longbird
