// Text files of separated fields, a line at a time, plain or gzip; which of the two, their content says.
//
// The separator is a comma, a tab, a semicolon or spaces: the first of these, in this order, that the first line of
// data holds. Spaces around fields do not count, and several spaces separate as one does. Empty lines and lines that
// begin with # are passed over, and so is the first line that is left when none of its fields is a number, a header,
// where the caller allows one: in files that go by position it cannot be told from the first node. A byte order mark
// and lines that end as on Windows are fine. Memory: one line and two buffers.
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
  // `array` names the file in errors. NOT_FOUND when it cannot be opened. A line longer than 4096 bytes is refused, or
  // than 32 bytes a field where that is more.
  static absl::StatusOr<CsvLines> Open(const std::string& path, absl::string_view array, int64_t max_fields);

  // Refuses a header from here on: the first line is data whatever it holds.
  void ForbidHeader() { header_allowed_ = false; }

  // Moves on to the next line of data. False when there is none; then the file was read to its end and is whole.
  absl::StatusOr<bool> Next();

  // Of the line that Next moved to. More than `max_fields` are shown as max_fields + 1.
  [[nodiscard]] std::span<const std::string_view> fields() const { return fields_; }
  // Empty lines that were passed over since the last line of data or the header.
  [[nodiscard]] int64_t blank_lines() const { return blank_lines_; }

  // The line is refused unless it has `count` fields.
  [[nodiscard]] absl::Status CheckFieldCount(int64_t count) const;
  // A field as an integer. What does not fit becomes the nearest that does: it is out of every range.
  [[nodiscard]] absl::StatusOr<int64_t> Integer(size_t field) const;
  // A field as a finite float32.
  [[nodiscard]] absl::StatusOr<float> Number(size_t field) const;

  // INVALID_GRAPH at this line; the position counts lines from 1.
  [[nodiscard]] absl::Status Refuse(absl::string_view fault) const;
  // INVALID_GRAPH for the whole file.
  [[nodiscard]] absl::Status RefuseFile(absl::string_view fault) const;

 private:
  struct CloseFile {
    void operator()(gzFile_s* file) const;
  };

  CsvLines(gzFile_s* file, absl::string_view array, int64_t max_fields);

  // Makes `line` the next line of the file, without its end. False at the end of the file.
  absl::StatusOr<bool> ReadLine(std::string_view& line);
  // More bytes after those in the buffer.
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
