#include "tests/lab/results_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar::lab {
namespace {

using Results = std::map<std::string, CellResult>;

absl::Status NoResult(const std::string& flag, const std::string& path, size_t number, absl::string_view why) {
  return InvalidField(flag, absl::StrCat(flag, " must hold results: '", path, "', line ", number, why));
}

absl::Status ReadLine(const std::string& flag, const std::string& path, const std::string& line, size_t number,
                      Results& results) {
  const auto json = nlohmann::ordered_json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("cell") || !json.contains("result")) {
    return NoResult(flag, path, number, " is none; give another file");
  }
  const absl::StatusOr<CellResult> result = ParseResult(json["result"]);
  if (!result.ok()) {
    return NoResult(flag, path, number, absl::StrCat(": ", result.status().message()));
  }
  if (!results.emplace(json["cell"].dump(), *result).second) {
    // Noise is fresh, so one of the two would have to be chosen.
    return InvalidField(flag, absl::StrCat(flag, " must hold a cell once: '", path, "', line ", number,
                                           " has one that stands before it"));
  }
  return absl::OkStatus();
}

// Reads all whole lines; the number of bytes that they take.
absl::StatusOr<size_t> ReadLines(const std::string& flag, const std::string& path, int file, Results& results) {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  ssize_t size = 0;
  while ((size = ::read(file, buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  if (size < 0) {
    return InvalidField(flag, absl::StrCat(flag, " cannot be read: '", path, "': ", std::strerror(errno)));
  }
  size_t begin = 0;
  size_t number = 1;
  for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1, ++number) {
    DPAR_RETURN_IF_ERROR(ReadLine(flag, path, text.substr(begin, end - begin), number, results));
  }
  // What a killed run left of its last line; a file that ends in anything else is not ours.
  constexpr absl::string_view kLineBegin = "{\"cell\":";
  const absl::string_view rest = absl::string_view(text).substr(begin);
  if (!absl::StartsWith(rest, kLineBegin) && !absl::StartsWith(kLineBegin, rest)) {
    return InvalidField(
        flag, absl::StrCat(flag, " must hold results: '", path, "' ends in something else; ", "give another file"));
  }
  return begin;
}

absl::Status CannotOpen(const std::string& flag, const std::string& path) {
  return InvalidField(flag, absl::StrCat(flag, " cannot be opened: '", path, "': ", std::strerror(errno)));
}

absl::Status ReadKnown(const std::string& path, Results& results) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return CannotOpen("known", path);
  }
  Results own;
  const absl::Status read = ReadLines("known", path, file, own).status();
  ::close(file);
  results.merge(own);
  return read;
}

}  // namespace

absl::StatusOr<ResultsFile> ResultsFile::Open(const std::string& path, const std::vector<std::string>& known) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) {
    return CannotOpen("results", path);
  }
  ResultsFile results(path, file);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition, v1::INTERNAL_FAULT,
                     absl::StrCat("another run is writing '", path, "'; wait for it, or give another --results"));
  }
  DPAR_ASSIGN_OR_RETURN(const size_t whole, ReadLines("results", path, file, results.results_));
  if (::ftruncate(file, static_cast<off_t>(whole)) != 0) {
    return InvalidField("results", absl::StrCat("results cannot be written: '", path, "': ", std::strerror(errno)));
  }
  for (const std::string& other : known) {
    DPAR_RETURN_IF_ERROR(ReadKnown(other, results.results_));
  }
  return results;
}

ResultsFile::ResultsFile(ResultsFile&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)), results_(std::move(other.results_)) {}

ResultsFile::~ResultsFile() {
  if (file_ >= 0) {
    ::close(file_);
  }
}

const CellResult* ResultsFile::Find(const Cell& cell) const {
  const auto found = results_.find(CellKey(cell).dump());
  return found == results_.end() ? nullptr : &found->second;
}

absl::Status ResultsFile::Append(const Cell& cell, const CellResult& result) {
  const nlohmann::ordered_json key = CellKey(cell);
  const std::string line = nlohmann::ordered_json{{"cell", key}, {"result", ResultJson(result)}}.dump() + "\n";
  if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return MakeError(absl::StatusCode::kInternal, v1::INTERNAL_FAULT,
                     absl::StrCat("cannot write to '", path_, "': ", std::strerror(errno)));
  }
  results_[key.dump()] = result;
  return absl::OkStatus();
}

}  // namespace dpar::lab
