#ifndef DPAR_SERVER_UPKEEP_MANIFEST_H_
#define DPAR_SERVER_UPKEEP_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace dpar {

inline constexpr char kManifestFile[] = "MANIFEST";
inline constexpr char kSqliteCopy[] = "dpar.sqlite";
inline constexpr char kPostgresDump[] = "store.pgdump";

struct BackedUpFile {
  std::string path;  // below the backup and, but for the store, below the data directory
  int64_t bytes = 0;
  std::string sha256;

  friend bool operator==(const BackedUpFile&, const BackedUpFile&) = default;
};

struct Manifest {
  std::string made_at;              // RFC 3339, UTC
  std::string software;             // "dpard 1.2.3"
  std::vector<BackedUpFile> files;  // by path, each once; the store is one of them

  [[nodiscard]] bool is_postgres() const;
  [[nodiscard]] int64_t total_bytes() const;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// Lines of text, the last a digest of those before.
std::string FormatManifest(const Manifest& manifest);
// DATA_LOSS for anything that FormatManifest does not write, and for a path out of the directory.
absl::StatusOr<Manifest> ParseManifest(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_SERVER_UPKEEP_MANIFEST_H_
