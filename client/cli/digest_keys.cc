#include "client/cli/digest_keys.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/sdk/input_file.h"
#include "client/sdk/private_directory.h"
#include "core/atomic_file.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

std::string KeyDirectory(const Variables& variables) {
  const std::string directory = DataDirectory(variables);
  return directory.empty() ? "" : absl::StrCat(directory, "/digest-keys");
}

}  // namespace

absl::StatusOr<std::string> SaveDigestKey(const Variables& variables, const std::string& content_digest,
                                          const std::string& key) {
  // It becomes a file's name, and it came over the wire.
  DPAR_RETURN_IF_ERROR(HexDecode(content_digest).status());
  const std::string directory = KeyDirectory(variables);
  if (directory.empty()) {
    return InvalidField("directory", "neither HOME nor XDG_DATA_HOME is set");
  }
  DPAR_RETURN_IF_ERROR(MakePrivateDirectory(directory));
  std::string file = absl::StrCat(directory, "/", content_digest);
  DPAR_RETURN_IF_ERROR(WriteFileAtomically(file, key + "\n", kPrivateFileMode));
  return file;
}

std::optional<std::string> FindDigestKey(const Variables& variables, const std::string& content_digest) {
  const std::string directory = KeyDirectory(variables);
  if (directory.empty() || content_digest.empty() || !HexDecode(content_digest).ok()) {
    return std::nullopt;
  }
  absl::StatusOr<std::string> key = ReadSmallFile("digest-key", absl::StrCat(directory, "/", content_digest));
  if (!key.ok()) {
    return std::nullopt;
  }
  absl::StripAsciiWhitespace(&*key);
  return *std::move(key);
}

}  // namespace dpar
