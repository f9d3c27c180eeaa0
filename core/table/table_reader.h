// Reads a table: a header, then a record a line, as spreadsheets and databases export them. Fields are separated by
// commas, semicolons or tabs, whichever the header holds most of, and may stand in quotes (RFC 4180: a quote within is
// doubled, and line ends within count as text). Plain or gzip as the content says; UTF-8, with or without a byte order
// mark; LF or CRLF. Empty lines are skipped. Memory: one record.
#ifndef DPAR_CORE_TABLE_TABLE_READER_H_
#define DPAR_CORE_TABLE_TABLE_READER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

struct gzFile_s;  // zlib's

namespace dpar {

inline constexpr size_t kMaxRecordBytes = size_t{1} << 20;
inline constexpr size_t kMaxTableColumns = 20'000;

class TableReader {
 public:
  // Reads the header. NOT_FOUND if the file cannot be opened; else errors are INVALID_ARGUMENT / INVALID_GRAPH and
  // begin with the file's name and the line.
  static absl::StatusOr<TableReader> Open(const std::string& path);

  [[nodiscard]] const std::vector<std::string>& header() const { return header_; }
  // The place of a column in the header.
  [[nodiscard]] std::optional<size_t> FindColumn(absl::string_view name) const;
  [[nodiscard]] char separator() const { return separator_; }
  [[nodiscard]] const std::string& file_name() const { return file_name_; }

  // Moves to the next record, which has a field for each column. False once the file was read to its end and is whole.
  absl::StatusOr<bool> Next();

  // Of the current record, without quotes and without spaces around them. They last until the next call of Next.
  [[nodiscard]] std::span<const absl::string_view> fields() const { return fields_; }
  // Where the current record begins, from 1; the header's before the first Next.
  [[nodiscard]] int64_t line() const { return record_line_; }
  // The record as it stands in the file, without its end.
  [[nodiscard]] absl::string_view record() const { return record_; }
  [[nodiscard]] absl::string_view header_record() const { return header_record_; }

  // How much of the file was read, 0 to 1.
  [[nodiscard]] double fraction() const;

  [[nodiscard]] absl::Status Refuse(absl::string_view fault) const;
  [[nodiscard]] absl::Status RefuseColumn(absl::string_view column, absl::string_view fault) const;

 private:
  struct CloseFile {
    void operator()(gzFile_s* file) const;
  };

  TableReader(gzFile_s* file, std::string file_name, int64_t file_bytes);

  absl::Status ReadHeader();
  // False at the end of the file. Sets record_ and record_line_.
  absl::StatusOr<bool> ReadRecord();
  // The end of the record that begins at begin_, once it is in the buffer.
  absl::StatusOr<size_t> FindRecordEnd();
  absl::Status Refill();
  absl::Status CheckText() const;
  absl::Status Split();
  absl::Status SplitQuoted();

  std::unique_ptr<gzFile_s, CloseFile> file_;
  std::string file_name_;
  int64_t file_bytes_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of the bytes in the buffer that were not used yet
  size_t end_ = 0;
  bool at_end_ = false;  // of the file
  int64_t next_line_ = 1;
  int64_t record_line_ = 1;
  bool has_quotes_ = false;   // the current record
  absl::string_view record_;  // into the buffer
  std::string unquoted_;      // the fields of a record with quotes
  std::vector<size_t> ends_;  // of those fields
  std::vector<absl::string_view> fields_;
  std::string header_record_;
  std::vector<std::string> header_;
  char separator_ = ',';
};

// A cell for a message to the owner of the file: in quotes, at most 40 bytes of it, and with whatever a terminal could
// take for a command as \xNN.
std::string ShownCell(absl::string_view cell);

// A field as CSV: in quotes where it needs them.
std::string CsvField(absl::string_view text);

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_TABLE_READER_H_
