// Matrices with a row for each node, worked on in blocks of rows.
#ifndef DPAR_CORE_INFER_ROW_BLOCKS_H_
#define DPAR_CORE_INFER_ROW_BLOCKS_H_

#include <Eigen/Core>
#include <cstdint>
#include <functional>

namespace dpar {

using NodeMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline constexpr int64_t kRowBlock = 256;  // fixed, so that results do not depend on the number of threads

// Calls body(first, last) once for each block first..last-1 of 0..rows-1.
void ForRowBlocks(int64_t rows, int threads, const std::function<void(int64_t first, int64_t last)>& body);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_ROW_BLOCKS_H_
