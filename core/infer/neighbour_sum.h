// Sums of the neighbours' rows, which take most of propagation's time. Rows are prefetched some neighbours ahead, also
// across the end of a node's list, and added in vector types. Entries are added in the order of the list: the result is
// that of the plain loop to the last bit.
#ifndef DPAR_CORE_INFER_NEIGHBOUR_SUM_H_
#define DPAR_CORE_INFER_NEIGHBOUR_SUM_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/graph/graph.h"
#include "core/infer/row_blocks.h"

namespace dpar {

using FourFloats = float __attribute__((vector_size(16)));
using TwoFloats = float __attribute__((vector_size(8)));
using TwoDoubles = double __attribute__((vector_size(16)));

inline void AddRow(const float* row, float* sum, size_t width) {
  size_t k = 0;
  for (; k + 4 <= width; k += 4) {
    FourFloats total;
    FourFloats entries;
    std::memcpy(&total, sum + k, sizeof(total));
    std::memcpy(&entries, row + k, sizeof(entries));
    total += entries;
    std::memcpy(sum + k, &total, sizeof(total));
  }
  for (; k < width; ++k) {
    sum[k] += row[k];
  }
}

inline void AddRow(const float* row, double* sum, size_t width) {
  size_t k = 0;
  for (; k + 2 <= width; k += 2) {
    TwoDoubles total;
    TwoFloats entries;
    std::memcpy(&total, sum + k, sizeof(total));
    std::memcpy(&entries, row + k, sizeof(entries));
    total += __builtin_convertvector(entries, TwoDoubles);
    std::memcpy(sum + k, &total, sizeof(total));
  }
  if (k < width) {
    sum[k] += static_cast<double>(row[k]);
  }
}

template <typename Number>
void AddNeighbours(const EdgesView& edges, int64_t node, const NodeMatrix& rows, Number* sum) {
  constexpr std::ptrdiff_t kAhead = 12;  // neighbours
  constexpr size_t kFloatsInALine = 16;  // of the cache
  const auto width = static_cast<size_t>(rows.cols());
  const int32_t* const end = edges.neighbours.data() + edges.neighbours.size();
  for (const int32_t& neighbour : edges.neighbours_of(node)) {
    if (end - &neighbour > kAhead) {
      const float* const later = rows.data() + static_cast<size_t>(*(&neighbour + kAhead)) * width;
      for (size_t k = 0; k < width; k += kFloatsInALine) {
        __builtin_prefetch(later + k);
      }
    }
    AddRow(rows.data() + static_cast<size_t>(neighbour) * width, sum, width);
  }
}

}  // namespace dpar

#endif  // DPAR_CORE_INFER_NEIGHBOUR_SUM_H_
