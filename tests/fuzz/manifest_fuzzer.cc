// Manifests of backups, as bytes and as lines that end with their right digest.
//
// For any bytes the result is DATA_LOSS, or a manifest that is written as it was read and names no file outside of its
// backup.
#include <cstdint>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"
#include "server/upkeep/manifest.h"
#include "tests/fuzz/require.h"

namespace dpar::fuzz {
namespace {

void Read(const std::string& text) {
  const absl::StatusOr<Manifest> manifest = ParseManifest(text);
  if (!manifest.ok()) {
    Require(absl::IsDataLoss(manifest.status()), manifest.status().ToString());
    return;
  }
  Require(FormatManifest(*manifest) == text, "a manifest is written as it was read");
  for (const BackedUpFile& file : manifest->files) {
    const std::string clean = std::filesystem::path("/backup/" + file.path).lexically_normal().string();
    Require(clean == "/backup/" + file.path && file.bytes >= 0, "a file lies in its backup");
  }
}

void Run(const std::string& text) {
  Read(text);
  Read(absl::StrCat(text, "sha256 ", Sha256Hex(text), "\n"));
}

}  // namespace
}  // namespace dpar::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  dpar::fuzz::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
