#include "core/infer/row_blocks.h"

#include <algorithm>

#include "core/parallel.h"

namespace dpar {

void ForRowBlocks(int64_t rows, int threads, const std::function<void(int64_t first, int64_t last)>& body) {
  const int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  ParallelFor(blocks, threads,
              [&](int /*worker*/, int64_t block) { body(block * kRowBlock, std::min(rows, (block + 1) * kRowBlock)); });
}

}  // namespace dpar
