// does: hands neighbours around in a warp
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void sweep(const float* in, float* out, int n)
{
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<16>(block);
    const int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    const float here = i < n && j < n ? in[i * n + j] : 0.0f;
    float up = warp.shfl_up(here, 1), down = warp.shfl_down(here, 1);
    block.sync();
    if (i >= n || j >= n) return;
    float value = here;
    if (i > 0 && j > 0 && i < n - 1 && j < n - 1) {
        if (threadIdx.x == 0) up = in[(i - 1) * n + j];
        if (warp.thread_rank() == 15) down = in[(i + 1) * n + j];
        value += conductivity((float)i / n) * (up + down + in[i * n + j - 1] + in[i * n + j + 1] - 4.0f * here);
    }
    out[i * n + j] = value;
}
