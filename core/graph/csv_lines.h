// Reads lines of separated fields, plain or gzip as the content says. The separator is the first of comma, tab,
// semicolon and space that the first data line holds; several spaces separate as one, and spaces around fields do not
// count. Skips empty lines, lines that begin with #, and a header (a first line without a number) unless the caller
// forbids it. Accepts a byte order mark and CRLF. Memory: one line and two buffers.
#ifndef DPAR_CORE_GRAPH_CSV_LINES_H_
#define DPAR_CORE_GRAPH_CSV_LINES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct gzFile_s;  // zlib's

namespace dpar {

class CsvLines {
 public:
  // `array` names the file in errors. NOT_FOUND if it cannot be opened. Longest line: max(4096, 32 * max_fields) bytes.
  static absl::StatusOr<CsvLines> Open(const std::string& path, absl::string_view array, int64_t max_fields);

  // For files that go by position, where a header cannot be told from the first node: the first line is data.
  void ForbidHeader() { header_allowed_ = false; }

  // Moves to the next data line. False once the file was read to its end and is whole.
  absl::StatusOr<bool> Next();

  // Of the current line. More than `max_fields` are shown as max_fields + 1.
  [[nodiscard]] std::span<const std::string_view> fields() const { return fields_; }
  // Empty lines since the last data line or the header.
  [[nodiscard]] int64_t blank_lines() const { return blank_lines_; }

  [[nodiscard]] absl::Status CheckFieldCount(int64_t count) const;
  // An integer that does not fit becomes the nearest that does, out of every range. A number is a finite float32.
  [[nodiscard]] absl::StatusOr<int64_t> Integer(size_t field) const;
  [[nodiscard]] absl::StatusOr<float> Number(size_t field) const;

  // INVALID_GRAPH at this line (position: lines from 1), or for the whole file.
  [[nodiscard]] absl::Status Refuse(absl::string_view fault) const;
  [[nodiscard]] absl::Status RefuseFile(absl::string_view fault) const;

 private:
  struct CloseFile {
    void operator()(gzFile_s* file) const;
  };

  CsvLines(gzFile_s* file, absl::string_view array, int64_t max_fields);

  // False at the end of the file. `line` comes without its end.
  absl::StatusOr<bool> ReadLine(std::string_view& line);
  absl::Status Refill();
  void Split(std::string_view line, char separator);
  [[nodiscard]] bool HasNumber() const;

  std::unique_ptr<gzFile_s, CloseFile> file_;
  std::string array_;
  size_t max_fields_;
  size_t max_line_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of the bytes in the buffer that were not used yet
  size_t end_ = 0;
  bool at_end_ = false;  // of the file
  bool header_allowed_ = true;
  bool header_possible_ = true;
  std::optional<char> separator_;
  std::vector<std::string_view> fields_;  // into the buffer
  int64_t line_number_ = 0;
  int64_t blank_lines_ = 0;
};

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CSV_LINES_H_
