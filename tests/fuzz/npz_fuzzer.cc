// Graph files from strangers. An input that begins as a zip does is read as it is; any other is a list of arrays, of
// which a zip with right checksums is made, so that mutations get past the container to the arrays.
//
// For any bytes the result is an error that names its reason, or a canonical graph that writing and reading gives back.
// libFuzzer bounds the memory (run.sh).
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/feature_scales.h"
#include "core/graph/graph_file.h"
#include "core/graph/npy.h"
#include "tests/fuzz/canonical.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/npz_words.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

constexpr size_t kMostRepeats = 64;

void Append(std::string& bytes, uint64_t number, int width) {
  for (int i = 0; i < width; ++i) {
    bytes += static_cast<char>(number >> (8 * i) & 0xff);
  }
}

// A raw deflate stream.
std::string Deflate(const std::string& bytes) {
  z_stream stream = {};
  Require(deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib starts");
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  Require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib packs");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// A zip by the book (APPNOTE sections 4.3.7, 4.3.12 and 4.3.16), entry by entry.
class Zip {
 public:
  void Add(const std::string& name, const std::string& content, bool packed) {
    const std::string data = packed ? Deflate(content) : content;
    std::string fields;  // what the local header and the directory share
    Append(fields, 20, 2);
    Append(fields, 0, 2);
    Append(fields, packed ? 8 : 0, 2);
    Append(fields, 0, 4);
    Append(fields, crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())), 4);
    Append(fields, data.size(), 4);
    Append(fields, content.size(), 4);
    Append(fields, name.size(), 2);
    Append(fields, 0, 2);
    directory_ += std::string("PK\x01\x02\x14\x00", 6) + fields;
    Append(directory_, 0, 6);
    Append(directory_, 0, 4);
    Append(directory_, bytes_.size(), 4);
    directory_ += name;
    bytes_ += "PK\x03\x04" + fields + name + data;
    ++entries_;
  }

  std::string Finish() {
    const size_t start = bytes_.size();
    bytes_ += directory_ + "PK\x05\x06";
    Append(bytes_, 0, 4);
    Append(bytes_, entries_, 2);
    Append(bytes_, entries_, 2);
    Append(bytes_, directory_.size(), 4);
    Append(bytes_, start, 4);
    Append(bytes_, 0, 2);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  std::string directory_;
  uint64_t entries_ = 0;
};

// One array: name, type, shape, how its content is stored, and the content. A shape that was not given follows from the
// content's length.
void AddArray(FuzzInput& input, Zip& zip) {
  const char* name = input.Pick(kArrayNames);
  const char* type = input.Pick(kArrayTypes);
  const uint8_t form = input.Byte();
  std::vector<int64_t> shape;
  for (unsigned rank = form & kRankBits; rank > 0; --rank) {
    shape.push_back((form & kWideShape) != 0 ? input.Read<int64_t>() & INT64_MAX : input.Byte());
  }
  const std::string content = input.Take(input.Read<uint16_t>());
  const size_t repeats = (form & kRepeated) != 0 ? 1 + input.Byte() % kMostRepeats : 1;
  std::string data;
  for (size_t i = 0; i < repeats; ++i) {
    data += content;
  }
  if ((form & kFittingShape) != 0) {
    const auto width = static_cast<size_t>(type[2] >= '1' && type[2] <= '9' ? type[2] - '0' : 1);
    shape = {static_cast<int64_t>(data.size() / width)};
  }
  const std::string header = (form & kOwnHeader) != 0 ? input.Take(input.Byte()) : MakeNpyHeader(type, shape);
  zip.Add(absl::StrCat(name, ".npy"), header + data, (form & kPacked) != 0);
}

std::string FileOf(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  if (input.rest().substr(0, 2) == "PK") {
    return std::string(input.rest());
  }
  Zip zip;
  while (!input.empty()) {
    AddArray(input, zip);
  }
  return zip.Finish();
}

// What the file system keeps of a graph is the graph.
void RequireRoundTrip(const ImportedGraph& imported, const GraphLimits& limits) {
  static const std::string path =
      (std::filesystem::temp_directory_path() / absl::StrCat("npz_fuzzer_", getpid(), ".npz")).string();
  const absl::Status written = WriteGraphFile(path, imported.graph);
  Require(written.ok(), absl::StrCat("a graph can be written: ", written.ToString()));
  const absl::StatusOr<ImportedGraph> again = ReadGraphFile(path, limits, imported.graph.sizes);
  std::filesystem::remove(path);
  Require(again.ok(), absl::StrCat("a written graph can be read: ", again.status().ToString()));
  Require(again->graph == imported.graph, "a written graph is read as it was");
  Require(CanonicalContent(again->graph) == CanonicalContent(imported.graph), "content does not change");
  Require(again->report.edges_symmetrised == 0 && again->report.duplicates_merged == 0 &&
              again->report.self_loops_dropped == 0 && again->report.zero_features_dropped == 0,
          "a canonical graph stays as it is");
}

GraphLimits SmallLimits() {
  GraphLimits limits;
  limits.max_nodes = 1 << 16;
  limits.max_features = 1 << 16;
  limits.max_classes = 1000;
  limits.max_edges = 1 << 20;
  limits.max_feature_entries = 1 << 20;
  limits.npz.max_arrays = 24;
  limits.npz.max_array_bytes = 16 << 20;
  limits.npz.max_total_bytes = 32 << 20;
  return limits;
}

void Read(const std::string& path, const std::optional<PublicSizes>& declared) {
  static const GraphLimits limits = SmallLimits();
  const absl::StatusOr<ImportedGraph> imported = ReadGraphFile(path, limits, declared);
  RequireJudged(imported.status(), {absl::StatusCode::kInvalidArgument, absl::StatusCode::kResourceExhausted});
  if (!imported.ok()) {
    return;
  }
  Require(!declared.has_value() || imported->graph.sizes == *declared, "declared sizes hold");
  RequireCanonical(imported->graph);
  const absl::StatusOr<FeatureScales> scales = ReadFeatureScales(path, limits);
  Require(scales.ok() && *scales == MeasureFeatures(imported->graph),
          "the features of the file are those of the graph");
  RequireRoundTrip(*imported, limits);
}

void Run(const uint8_t* data, size_t size) {
  const MemoryFile file(FileOf(data, size));
  const absl::StatusOr<PublicSizes> sizes = ReadGraphSizes(file.path(), SmallLimits(), std::nullopt);
  RequireJudged(sizes.status(), {absl::StatusCode::kInvalidArgument, absl::StatusCode::kResourceExhausted});
  Read(file.path(), std::nullopt);
  Read(file.path(), PublicSizes{3, 2, 2});
  if (sizes.ok()) {
    Read(file.path(), *sizes);
  }
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(data, size);
  return 0;
}
