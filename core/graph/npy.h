// The header of one npy array, format versions 1 to 3: a Python dictionary literal with descr, fortran_order and shape.
#ifndef DPAR_CORE_GRAPH_NPY_H_
#define DPAR_CORE_GRAPH_NPY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

enum class NpyKind { kSigned, kUnsigned, kFloat, kBool, kUtf32Text, kByteText };

struct NpyHeader {
  NpyKind kind = NpyKind::kFloat;
  int64_t item_bytes = 0;
  std::vector<int64_t> shape;
  int64_t count = 1;  // product of shape; count * item_bytes does not overflow
};

// Refuses anything but that literal, object and structured types, big-endian numbers, widths that NpyArray cannot hold,
// byte strings of rank 2 or more, other text of rank 1 or more, Fortran order of rank 2 or more, and sizes that
// overflow.
absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view array, absl::string_view dictionary);

// Magic, version 1.0, length and dictionary, padded to a multiple of 64 bytes as numpy does.
std::string MakeNpyHeader(absl::string_view descr, const std::vector<int64_t>& shape);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_NPY_H_
