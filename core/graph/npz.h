// numpy's npz container: a zip of little-endian arrays, read in chunks of 256 KiB. Object arrays are refused, never
// unpickled, and sizes are checked against the limits before anything is allocated.
#ifndef DPAR_CORE_GRAPH_NPZ_H_
#define DPAR_CORE_GRAPH_NPZ_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

// One array in C order. Integers of up to 32 bits signed, 16 bits unsigned, and booleans are int32; wider ones int64
// (uint64 when its values fit); floats keep their width; text ('U' or 'S' of rank 0) is UTF-8. Byte strings ('S' of
// rank 1) are one text, in which each has the same width and is padded with zeros.
struct NpyArray {
  std::vector<int64_t> shape;
  std::variant<std::vector<int64_t>, std::vector<int32_t>, std::vector<float>, std::vector<double>, std::string> data;
};

// The same for writing, without owning the entries. Text is written as 'S', of rank 1 in equal parts.
struct NpyView {
  std::vector<int64_t> shape;
  std::variant<std::span<const int64_t>, std::span<const int32_t>, std::span<const float>, std::span<const double>,
               absl::string_view>
      data;
};

using NpyChunk = decltype(NpyView::data);
// `position` counts the entries before the chunk, which is valid only during the visit.
using NpyVisitor = std::function<absl::Status(int64_t position, const NpyChunk& chunk)>;

struct NpzLimits {
  int64_t max_arrays = 64;
  int64_t max_array_bytes = int64_t{4} << 30;  // after decompression
  int64_t max_total_bytes = int64_t{8} << 30;  // after decompression, all arrays that are read together
};

// Reads only arrays that are asked for. Errors are INVALID_ARGUMENT / INVALID_GRAPH and name the array; NOT_FOUND if
// the file cannot be opened. Callers may rely on the shape they saw first: an array whose shape changes is refused.
class NpzFile {
 public:
  static absl::StatusOr<NpzFile> Open(const std::string& path, const NpzLimits& limits);

  NpzFile(NpzFile&& other) noexcept;
  NpzFile& operator=(NpzFile&& other) noexcept;
  ~NpzFile();

  [[nodiscard]] bool Contains(absl::string_view name) const;

  // The shape alone, from the array's header.
  absl::StatusOr<std::vector<int64_t>> ReadShape(absl::string_view name);

  absl::StatusOr<NpyArray> ReadArray(absl::string_view name);

  // Visits chunks in order until the visitor fails; an empty array or a text is one chunk. Entries can be relied on
  // after OK only: the checksum is compared at the end. An array that is read again counts against the limits once.
  absl::Status ReadChunks(absl::string_view name, const NpyVisitor& visit);

  // For progress: bytes of an array to read, as the file claims, or the limit.
  [[nodiscard]] int64_t BytesOf(absl::string_view name) const;
  // Calls `callback` after every chunk with the bytes read in all. Reading is CANCELLED once it says no.
  void OnBytesRead(std::function<bool(int64_t bytes)> callback);

 private:
  struct State;
  explicit NpzFile(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

// Writes the arrays atomically (temporary file, synced, renamed). The same arrays give the same bytes.
absl::Status WriteNpzFile(const std::string& path, const std::map<std::string, NpyView>& arrays);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_NPZ_H_
