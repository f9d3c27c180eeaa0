#include "server/upkeep/manifest.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/certificate/digest.h"

namespace dpar {
namespace {

constexpr absl::string_view kTitle = "dpar-backup 1";
constexpr absl::string_view kDigestLine = "sha256 ";
constexpr size_t kHashDigits = 64;
// Title, time, version, one file, digest.
constexpr size_t kFewestLines = 5;

absl::Status Unreadable(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("the backup's ", kManifestFile, " is damaged: ", what,
                                          "; nothing was restored. Take another backup"));
}

// No "..", and no hidden name.
bool IsInside(absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  return std::none_of(parts.begin(), parts.end(),
                      [](absl::string_view part) { return part.empty() || part.front() == '.'; });
}

bool ReadFileLine(absl::string_view line, BackedUpFile& file) {
  // The path may contain spaces.
  const std::vector<absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 3));
  if (words.size() != 4 || words[0] != "file" || words[1].size() != kHashDigits || !HexDecode(words[1]).ok() ||
      !absl::SimpleAtoi(words[2], &file.bytes) || file.bytes < 0 || !IsInside(words[3])) {
    return false;
  }
  file.sha256 = std::string(words[1]);
  file.path = std::string(words[3]);
  return true;
}

bool Has(const Manifest& manifest, absl::string_view path) {
  return std::any_of(manifest.files.begin(), manifest.files.end(),
                     [path](const BackedUpFile& file) { return file.path == path; });
}

}  // namespace

bool Manifest::is_postgres() const { return Has(*this, kPostgresDump); }

int64_t Manifest::total_bytes() const {
  return std::accumulate(files.begin(), files.end(), int64_t{0},
                         [](int64_t sum, const BackedUpFile& file) { return sum + file.bytes; });
}

std::string FormatManifest(const Manifest& manifest) {
  std::string text = absl::StrCat(kTitle, "\nmade ", manifest.made_at, "\nby ", manifest.software, "\n");
  for (const BackedUpFile& file : manifest.files) {
    absl::StrAppend(&text, "file ", file.sha256, " ", file.bytes, " ", file.path, "\n");
  }
  return absl::StrCat(text, kDigestLine, Sha256Hex(text), "\n");
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (!lines.back().empty()) {
    return Unreadable("its last line has no end");
  }
  lines.pop_back();
  if (lines.size() < kFewestLines || lines[0] != kTitle) {
    return Unreadable("it is cut short, or of another kind or version");
  }
  if (lines.back() != absl::StrCat(kDigestLine, Sha256Hex(text.substr(0, text.size() - lines.back().size() - 1)))) {
    return Unreadable("its content does not match its digest");
  }
  Manifest manifest;
  if (!absl::ConsumePrefix(&lines[1], "made ") || !absl::ConsumePrefix(&lines[2], "by ")) {
    return Unreadable("it does not say what made it");
  }
  manifest.made_at = std::string(lines[1]);
  manifest.software = std::string(lines[2]);
  for (size_t i = 3; i + 1 < lines.size(); ++i) {
    BackedUpFile file;
    if (!ReadFileLine(lines[i], file) || (!manifest.files.empty() && manifest.files.back().path >= file.path)) {
      return Unreadable(absl::StrCat("line ", i + 1, " is none that a backup has"));
    }
    manifest.files.push_back(std::move(file));
  }
  if (Has(manifest, kSqliteCopy) == Has(manifest, kPostgresDump)) {
    return Unreadable("it does not have exactly one store");
  }
  // A number may be written in more than one way, of which a backup uses one.
  return FormatManifest(manifest) == text ? absl::StatusOr<Manifest>(std::move(manifest))
                                          : Unreadable("it is not written as a backup writes it");
}

}  // namespace dpar
