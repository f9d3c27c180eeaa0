// Model files. An input that begins as a zip does is read as it is; any other is a header's text and arrays, of which a
// zip with right checksums is made.
//
// For any bytes the result is an error that names its reason, or a model that is written as it was read.
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/graph/npz.h"
#include "core/infer/model.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

std::string TemporaryPath(const std::string& name) {
  return (std::filesystem::temp_directory_path() / absl::StrCat("model_fuzzer_", getpid(), "_", name)).string();
}

struct Floats {
  std::vector<int64_t> shape;
  std::vector<float> entries;
};

// A shape of bytes, and as many numbers: a few given ones over and over.
Floats TakeFloats(FuzzInput& input, size_t rank) {
  Floats floats;
  size_t count = 1;
  for (size_t i = 0; i < rank; ++i) {
    floats.shape.push_back(input.Byte() % 40);
    count *= static_cast<size_t>(floats.shape.back());
  }
  std::vector<float> given(1 + input.Choice(4));
  for (float& entry : given) {
    entry = input.Read<float>();
  }
  for (size_t i = 0; i < count; ++i) {
    floats.entries.push_back(given[i % given.size()]);
  }
  return floats;
}

// The header's length and text, then arrays: name and rank.
void WriteArrays(FuzzInput input, const std::string& path) {
  const std::string header = input.Take(input.Read<uint16_t>());
  std::map<std::string, Floats> floats;
  const std::vector<std::string> names = {"weights", "output_weights", "center", "encoder_weights", "other"};
  while (!input.empty()) {
    const std::string& name = input.Pick(names);
    floats[name] = TakeFloats(input, input.Choice(4));
  }
  std::map<std::string, NpyView> arrays = {{"header", NpyView{{}, absl::string_view(header)}}};
  for (const auto& [name, array] : floats) {
    arrays[name] = NpyView{array.shape, std::span<const float>(array.entries)};
  }
  const absl::Status written = WriteNpzFile(path, arrays);
  Require(written.ok(), absl::StrCat("arrays can be written: ", written.ToString()));
}

void Read(const std::string& path) {
  const absl::StatusOr<Model> model = ReadModelFile(path);
  RequireJudged(model.status(), {absl::StatusCode::kInvalidArgument});
  if (!model.ok()) {
    return;
  }
  static const std::string copy = TemporaryPath("copy");
  Require(WriteModelFile(copy, *model).ok(), "a model that was read can be written");
  const absl::StatusOr<Model> again = ReadModelFile(copy);
  Require(again.ok(), "a written model can be read");
  Require(ModelHeader(*again) == ModelHeader(*model) && again->weights == model->weights &&
              again->output_weights == model->output_weights && again->center == model->center &&
              again->encoder_weights == model->encoder_weights,
          "a model is written as it was read");
}

void Run(const uint8_t* data, size_t size) {
  const FuzzInput input(data, size);
  if (input.rest().substr(0, 2) == "PK") {
    Read(MemoryFile(std::string(input.rest())).path());
    return;
  }
  static const std::string path = TemporaryPath("made");
  WriteArrays(input, path);
  Read(path);
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(data, size);
  return 0;
}
