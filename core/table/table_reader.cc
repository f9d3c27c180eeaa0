#include "core/table/table_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/error.h"
#include "core/plain_text.h"
#include "core/status_macros.h"
#include "core/table/utf8.h"

namespace dpar {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr unsigned kDecompressionBytes = 1U << 17;
constexpr size_t kMaxColumnNameBytes = 128;

absl::string_view Trim(absl::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

// The one of comma, semicolon and tab that stands most often outside of quotes.
char FindSeparator(absl::string_view header) {
  constexpr absl::string_view kSeparators = ",;\t";
  size_t counts[kSeparators.size()] = {};
  bool quoted = false;
  for (const char c : header) {
    quoted ^= c == '"';
    if (const size_t found = kSeparators.find(c); !quoted && found != absl::string_view::npos) {
      ++counts[found];
    }
  }
  return kSeparators[static_cast<size_t>(std::max_element(std::begin(counts), std::end(counts)) - counts)];
}

// Appends the text of the quoted field that begins at `at`, and returns the place after its closing quote, which comes:
// a record has an even number of quotes.
size_t TakeQuoted(absl::string_view record, size_t at, std::string& text) {
  for (++at; at < record.size(); ++at) {
    if (record[at] == '"') {
      ++at;
      if (at == record.size() || record[at] != '"') {
        return at;
      }
    }
    text += record[at];
  }
  return at;
}

absl::Status FileError(absl::string_view file, int64_t line, absl::string_view what) {
  return MakeError(absl::StatusCode::kInvalidArgument, v1::INVALID_GRAPH, what,
                   {{"table", std::string(file)}, {"line", absl::StrCat(line)}});
}

}  // namespace

void TableReader::CloseFile::operator()(gzFile_s* file) const { gzclose_r(file); }

TableReader::TableReader(gzFile_s* file, std::string file_name, int64_t file_bytes)
    : file_(file), file_name_(std::move(file_name)), file_bytes_(file_bytes), buffer_(kBufferBytes) {}

absl::StatusOr<TableReader> TableReader::Open(const std::string& path) {
  // Non-blocking, so that a path that names a pipe does not hang.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat facts = {};
  if (descriptor < 0 || fstat(descriptor, &facts) != 0) {
    const int error = errno;
    if (descriptor >= 0) {
      close(descriptor);
    }
    return MakeError(absl::StatusCode::kNotFound, v1::RESOURCE_NOT_FOUND,
                     absl::StrCat("cannot open ", path, ": ", std::strerror(error)), {{"resource", path}});
  }
  const std::string name = std::filesystem::path(path).filename().string();
  if (!S_ISREG(facts.st_mode)) {
    close(descriptor);
    return FileError(name, 0, absl::StrCat(name, " is not a regular file"));
  }
  gzFile_s* const file = gzdopen(descriptor, "rb");
  if (file == nullptr) {
    close(descriptor);
    return absl::ResourceExhaustedError(absl::StrCat("not enough memory to read ", path));
  }
  gzbuffer(file, kDecompressionBytes);
  TableReader reader(file, name, facts.st_size);
  DPAR_RETURN_IF_ERROR(reader.ReadHeader());
  return reader;
}

absl::Status TableReader::ReadHeader() {
  DPAR_RETURN_IF_ERROR(Refill());
  const absl::string_view start(buffer_.data(), end_);
  if (absl::StartsWith(start, "\xff\xfe") || absl::StartsWith(start, "\xfe\xff")) {
    return Refuse("the file is UTF-16; save it as UTF-8");
  }
  if (absl::StartsWith(start, "\xef\xbb\xbf")) {
    begin_ = 3;
  }
  DPAR_ASSIGN_OR_RETURN(const bool found, ReadRecord());
  if (!found) {
    return Refuse("the file is empty; expected a header with the names of its columns");
  }
  header_record_ = std::string(record_);
  separator_ = FindSeparator(record_);
  DPAR_RETURN_IF_ERROR(Split());
  std::set<absl::string_view> names;
  for (const absl::string_view name : fields_) {
    if (name.empty() || name.size() > kMaxColumnNameBytes || !IsPlainText(name)) {
      return Refuse(absl::StrCat("a column of the header has no name, or one of more than ", kMaxColumnNameBytes,
                                 " bytes or with control characters"));
    }
    if (!names.insert(name).second) {
      return Refuse(absl::StrCat("two columns of the header are named '", name, "'"));
    }
  }
  for (const absl::string_view name : fields_) {
    header_.emplace_back(name);
  }
  return absl::OkStatus();
}

std::optional<size_t> TableReader::FindColumn(absl::string_view name) const {
  const auto found = std::find(header_.begin(), header_.end(), name);
  return found == header_.end() ? std::nullopt : std::optional(static_cast<size_t>(found - header_.begin()));
}

absl::StatusOr<bool> TableReader::Next() {
  DPAR_ASSIGN_OR_RETURN(const bool found, ReadRecord());
  if (!found) {
    return false;
  }
  DPAR_RETURN_IF_ERROR(Split());
  if (fields_.size() != header_.size()) {
    return Refuse(absl::StrCat(fields_.size(), " fields; the header has ", header_.size(), " columns"));
  }
  return true;
}

absl::StatusOr<bool> TableReader::ReadRecord() {
  while (true) {
    record_line_ = next_line_;
    DPAR_ASSIGN_OR_RETURN(const size_t end, FindRecordEnd());
    if (end == begin_ && at_end_ && begin_ == end_) {
      return false;
    }
    record_ = absl::string_view(buffer_.data() + begin_, end - begin_);
    begin_ = std::min(end + 1, end_);  // after the line's end, if there is one
    if (!record_.empty() && record_.back() == '\r') {
      record_.remove_suffix(1);
    }
    if (!Trim(record_).empty()) {
      DPAR_RETURN_IF_ERROR(CheckText());
      return true;
    }
  }
}

absl::StatusOr<size_t> TableReader::FindRecordEnd() {
  size_t at = begin_;
  bool quoted = false;
  has_quotes_ = false;
  while (true) {
    const auto* newline = static_cast<const char*>(std::memchr(buffer_.data() + at, '\n', end_ - at));
    const size_t stop = newline == nullptr ? end_ : static_cast<size_t>(newline - buffer_.data());
    const auto quotes = std::count(buffer_.data() + at, buffer_.data() + stop, '"');
    quoted ^= quotes % 2 == 1;
    has_quotes_ |= quotes > 0;
    at = stop;
    if (newline != nullptr) {
      ++next_line_;
      if (!quoted) {
        return stop;
      }
      ++at;
    } else if (at_end_) {
      return quoted ? absl::StatusOr<size_t>(Refuse("a quote is opened and never closed")) : stop;
    } else {
      if (end_ - begin_ >= kMaxRecordBytes) {
        return Refuse(absl::StrCat("the record has more than ", kMaxRecordBytes, " bytes; is a quote not closed?"));
      }
      const size_t used = begin_;
      DPAR_RETURN_IF_ERROR(Refill());
      at -= used;
    }
  }
}

absl::Status TableReader::Refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ == buffer_.size()) {
    buffer_.resize(2 * buffer_.size());
  }
  const int got = gzread(file_.get(), buffer_.data() + end_, static_cast<unsigned>(buffer_.size() - end_));
  if (got < 0) {
    return Refuse("the file cannot be read further: it is damaged gzip, or the disk failed");
  }
  end_ += static_cast<size_t>(got);
  at_end_ = got == 0;
  int error = Z_OK;
  gzerror(file_.get(), &error);
  if (at_end_ && error == Z_BUF_ERROR) {
    return Refuse("the gzip file is cut off");
  }
  return absl::OkStatus();
}

absl::Status TableReader::CheckText() const {
  if (std::memchr(record_.data(), '\0', record_.size()) != nullptr) {
    return Refuse("the record holds a NUL byte; expected text in UTF-8");
  }
  return IsUtf8(record_) ? absl::OkStatus() : Refuse("the record is not UTF-8; save the file as UTF-8");
}

absl::Status TableReader::Split() {
  fields_.clear();
  if (has_quotes_) {
    return SplitQuoted();
  }
  absl::string_view rest = record_;
  while (true) {
    const size_t stop = rest.find(separator_);
    fields_.push_back(Trim(rest.substr(0, stop)));
    if (fields_.size() > kMaxTableColumns) {
      return Refuse(absl::StrCat("more than ", kMaxTableColumns, " fields"));
    }
    if (stop == absl::string_view::npos) {
      return absl::OkStatus();
    }
    rest.remove_prefix(stop + 1);
  }
}

absl::Status TableReader::SplitQuoted() {
  unquoted_.clear();
  ends_.clear();
  const auto is_space = [this](char c) { return c == ' ' || (c == '\t' && separator_ != '\t'); };
  size_t at = 0;
  bool more = true;
  while (more) {
    while (at < record_.size() && is_space(record_[at])) {
      ++at;
    }
    if (at < record_.size() && record_[at] == '"') {
      at = TakeQuoted(record_, at, unquoted_);
      while (at < record_.size() && is_space(record_[at])) {
        ++at;
      }
      if (at < record_.size() && record_[at] != separator_) {
        return Refuse("text follows a closing quote; a quote within quotes must be doubled");
      }
    } else {
      const size_t stop = std::min(record_.find(separator_, at), record_.size());
      const absl::string_view field = record_.substr(at, stop - at);
      if (field.find('"') != absl::string_view::npos) {
        return Refuse(
            "a quote stands within a field that does not begin with one; put the whole field in quotes and double "
            "those in it");
      }
      absl::StrAppend(&unquoted_, field);
      at = stop;
    }
    ends_.push_back(unquoted_.size());
    if (ends_.size() > kMaxTableColumns) {
      return Refuse(absl::StrCat("more than ", kMaxTableColumns, " fields"));
    }
    more = at < record_.size();
    ++at;
  }
  size_t start = 0;
  for (const size_t stop : ends_) {
    fields_.push_back(Trim(absl::string_view(unquoted_).substr(start, stop - start)));
    start = stop;
  }
  return absl::OkStatus();
}

double TableReader::fraction() const {
  const auto read = static_cast<double>(gzoffset(file_.get()));
  return std::clamp(read / std::max(1.0, static_cast<double>(file_bytes_)), 0.0, 1.0);
}

absl::Status TableReader::Refuse(absl::string_view fault) const {
  return FileError(file_name_, record_line_, absl::StrCat(file_name_, " line ", record_line_, ": ", fault));
}

absl::Status TableReader::RefuseColumn(absl::string_view column, absl::string_view fault) const {
  return FileError(file_name_, record_line_,
                   absl::StrCat(file_name_, " line ", record_line_, ", column ", column, ": ", fault));
}

std::string ShownCell(absl::string_view cell) {
  constexpr size_t kMaxShownBytes = 40;
  std::string shown = "'";
  size_t at = 0;
  while (at < cell.size()) {
    size_t end = at + 1;
    while (end < cell.size() && (static_cast<uint8_t>(cell[end]) & 0xc0) == 0x80) {
      ++end;  // whole characters only
    }
    if (end > kMaxShownBytes) {
      break;
    }
    const absl::string_view character = cell.substr(at, end - at);
    const bool is_c1_control = character >= "\u0080" && character <= "\u009F";
    if (IsPlainText(character) && !is_c1_control) {
      absl::StrAppend(&shown, character);
    } else {
      for (const char byte : character) {
        absl::StrAppend(&shown, "\\x", absl::Hex(static_cast<uint8_t>(byte), absl::kZeroPad2));
      }
    }
    at = end;
  }
  return absl::StrCat(shown, at < cell.size() ? "..." : "", "'");
}

std::string CsvField(absl::string_view text) {
  const bool plain = text.find_first_of(",;\t\"\r\n") == absl::string_view::npos && !text.empty() &&
                     text.front() != ' ' && text.back() != ' ';
  return plain ? std::string(text) : absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

}  // namespace dpar
