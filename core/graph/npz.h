// numpy's npz container, as far as numbers go: a zip of little-endian arrays. Object arrays are refused, never
// unpickled, and nothing is allocated before the sizes in the file were checked against the limits. Arrays are read in
// chunks of a quarter of a mebibyte, so that a reader of large graphs holds its result and little else.
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
// (uint64 when its values fit); floats keep their width; text ('U' or 'S' of rank 0) is UTF-8.
struct NpyArray {
  std::vector<int64_t> shape;
  std::variant<std::vector<int64_t>, std::vector<int32_t>, std::vector<float>, std::vector<double>, std::string> data;
};

// The same for writing, without owning the entries. Text is written as 'S'.
struct NpyView {
  std::vector<int64_t> shape;
  std::variant<std::span<const int64_t>, std::span<const int32_t>, std::span<const float>, std::span<const double>,
               absl::string_view>
      data;
};

// Consecutive entries of one array, in the types of NpyArray.
using NpyChunk = decltype(NpyView::data);
// `position` counts the entries before the chunk, which is gone when the visit returns.
using NpyVisitor = std::function<absl::Status(int64_t position, const NpyChunk& chunk)>;

struct NpzLimits {
  int64_t max_arrays = 64;
  int64_t max_array_bytes = int64_t{4} << 30;  // after decompression
  int64_t max_total_bytes = int64_t{8} << 30;  // after decompression, all arrays that are read together
};

// An npz file open for reading. Only arrays that are asked for are read, so object arrays that nobody asks for do no
// harm. Errors are INVALID_ARGUMENT / INVALID_GRAPH and name the array; a file that cannot be opened is NOT_FOUND. An
// array whose shape changes between two calls is refused, so a caller may rely on the shape that it saw first.
class NpzFile {
 public:
  static absl::StatusOr<NpzFile> Open(const std::string& path, const NpzLimits& limits);

  NpzFile(NpzFile&& other) noexcept;
  NpzFile& operator=(NpzFile&& other) noexcept;
  ~NpzFile();

  [[nodiscard]] bool Contains(absl::string_view name) const;

  // The shape alone, from the array's header.
  absl::StatusOr<std::vector<int64_t>> ReadShape(absl::string_view name);

  // The whole array.
  absl::StatusOr<NpyArray> ReadArray(absl::string_view name);

  // Visits the entries in order, a chunk at a time; an array without entries is one empty chunk, text is one chunk.
  // Ends with the visitor's first error. What was visited can be relied on once the call returned OK: the checksum is
  // compared at the end. An array may be read again, and counts against the limits once.
  absl::Status ReadChunks(absl::string_view name, const NpyVisitor& visit);

  // Bytes of an array that is read, for who wants to say how far reading is: what the file claims, or the limit.
  [[nodiscard]] int64_t BytesOf(absl::string_view name) const;
  // From now on `callback` is told after every chunk how many bytes were read in all. Reading is CANCELLED once it says
  // no.
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
