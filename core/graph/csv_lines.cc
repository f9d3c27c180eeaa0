#include "core/graph/csv_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/graph_error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 16;
constexpr unsigned kDecompressionBytes = 1U << 16;
constexpr size_t kMaxLineBytes = 4096;
constexpr size_t kMaxFieldBytes = 32;

std::string_view TrimSpaces(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

char FindSeparator(std::string_view line) {
  for (const char separator : {',', '\t', ';', ' '}) {
    if (line.find(separator) != std::string_view::npos) {
      return separator;
    }
  }
  return ',';  // one field
}

bool IsControl(char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f'; }

}  // namespace

void CsvLines::CloseFile::operator()(gzFile_s* file) const { gzclose_r(file); }

CsvLines::CsvLines(gzFile_s* file, absl::string_view array, int64_t max_fields)
    : file_(file),
      array_(array),
      max_fields_(static_cast<size_t>(max_fields)),
      max_line_bytes_(std::max(kMaxLineBytes, max_fields_ * kMaxFieldBytes)),
      buffer_(kBufferBytes) {}

absl::StatusOr<CsvLines> CsvLines::Open(const std::string& path, absl::string_view array, int64_t max_fields) {
  // Non-blocking, so that a path that names a pipe does not hang.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat facts = {};
  if (descriptor < 0 || fstat(descriptor, &facts) != 0) {
    const absl::Status status =
        MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                  absl::StrCat("cannot open ", path, ": ", std::strerror(errno)), {{"resource", path}});
    if (descriptor >= 0) {
      close(descriptor);
    }
    return status;
  }
  gzFile file = S_ISREG(facts.st_mode) ? gzdopen(descriptor, "rb") : nullptr;
  if (file == nullptr) {
    close(descriptor);
    return GraphError(array, "is not a regular file");
  }
  gzbuffer(file, kDecompressionBytes);
  return CsvLines(file, array, max_fields);
}

absl::Status CsvLines::Refill() {
  std::move(buffer_.begin() + static_cast<std::ptrdiff_t>(begin_), buffer_.begin() + static_cast<std::ptrdiff_t>(end_),
            buffer_.begin());
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) {
    buffer_.resize(2 * buffer_.size());
  }
  const int got = gzread(file_.get(), buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  int error = Z_OK;
  gzerror(file_.get(), &error);
  // A gzip file that ends too early is Z_BUF_ERROR, although what could be read is given.
  if (got < 0 || (error != Z_OK && error != Z_STREAM_END)) {
    return RefuseFile("is truncated or damaged");
  }
  at_end_ = got == 0;
  end_ += static_cast<size_t>(got);
  return absl::OkStatus();
}

absl::StatusOr<bool> CsvLines::ReadLine(std::string_view& line) {
  size_t searched = 0;
  const char* line_end = nullptr;
  for (;;) {
    const std::string_view rest(buffer_.data() + begin_, end_ - begin_);
    line_end = static_cast<const char*>(std::memchr(rest.data() + searched, '\n', rest.size() - searched));
    const size_t length = line_end == nullptr ? rest.size() : static_cast<size_t>(line_end - rest.data());
    if (length > max_line_bytes_) {
      ++line_number_;
      return Refuse(absl::StrCat("is longer than ", max_line_bytes_, " bytes"));
    }
    if (line_end != nullptr || at_end_) {
      line = rest.substr(0, length);
      break;
    }
    searched = rest.size();
    DPAR_RETURN_IF_ERROR(Refill());
  }
  if (line_end == nullptr && line.empty()) {
    return false;
  }
  begin_ += line.size() + (line_end == nullptr ? 0 : 1);
  ++line_number_;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (line_number_ == 1 && line.starts_with(kByteOrderMark)) {
    line.remove_prefix(kByteOrderMark.size());
  }
  if (!line.empty() && line.back() == '\r') {
    line.remove_suffix(1);
  }
  if (std::any_of(line.begin(), line.end(), IsControl)) {
    return Refuse("is not text");
  }
  return true;
}

void CsvLines::Split(std::string_view line, char separator) {
  fields_.clear();
  while (fields_.size() <= max_fields_) {
    const size_t end = line.find(separator);
    fields_.push_back(TrimSpaces(line.substr(0, end)));
    if (end == std::string_view::npos) {
      return;
    }
    line.remove_prefix(end + 1);
    if (separator == ' ') {
      line = TrimSpaces(line);
    }
  }
}

bool CsvLines::HasNumber() const {
  return std::any_of(fields_.begin(), fields_.end(), [](std::string_view field) {
    double value = 0;
    const absl::from_chars_result result = absl::from_chars(field.data(), field.data() + field.size(), value);
    return result.ec != std::errc::invalid_argument && result.ptr == field.data() + field.size();
  });
}

absl::StatusOr<bool> CsvLines::Next() {
  blank_lines_ = 0;
  for (std::string_view line;;) {
    DPAR_ASSIGN_OR_RETURN(const bool found, ReadLine(line));
    if (!found) {
      return false;
    }
    line = TrimSpaces(line);
    if (line.empty()) {
      ++blank_lines_;
      continue;
    }
    if (line.front() == '#') {
      continue;
    }
    const char separator = separator_.has_value() ? *separator_ : FindSeparator(line);
    Split(line, separator);
    if (std::exchange(header_possible_, false) && !HasNumber()) {
      if (!header_allowed_ || fields_.size() == 1) {
        return Refuse("is not a number; where lines go by position, remove a header");
      }
      blank_lines_ = 0;
      continue;
    }
    separator_ = separator;
    return true;
  }
}

absl::Status CsvLines::CheckFieldCount(int64_t count) const {
  const auto wanted = static_cast<size_t>(count);
  if (fields_.size() < wanted) {
    return Refuse(absl::StrCat("has fewer fields than ", count));
  }
  if (fields_.size() > wanted) {
    return Refuse(absl::StrCat("has more fields than ", count));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> CsvLines::Integer(size_t field) const {
  const std::string_view text = fields_[field];
  const char* end = text.data() + text.size();
  int64_t value = 0;
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (stopped != end || error == std::errc::invalid_argument) {
    return Refuse("holds something else than an integer");
  }
  if (error == std::errc::result_out_of_range) {
    return text.front() == '-' ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  }
  return value;
}

absl::StatusOr<float> CsvLines::Number(size_t field) const {
  const std::string_view text = fields_[field];
  const char* end = text.data() + text.size();
  float value = 0;
  const absl::from_chars_result result = absl::from_chars(text.data(), end, value);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) {
    return Refuse("holds something else than a number");
  }
  // A number too close to 0 is 0, as it is when a double becomes a float.
  const bool too_large = result.ec == std::errc::result_out_of_range && std::abs(value) > 1;
  if (too_large || !std::isfinite(value)) {
    return Refuse("holds a number that is not a finite float32");
  }
  return value;
}

absl::Status CsvLines::Refuse(absl::string_view fault) const { return GraphErrorAt(array_, line_number_, fault); }

absl::Status CsvLines::RefuseFile(absl::string_view fault) const { return GraphError(array_, fault); }

}  // namespace dpar
