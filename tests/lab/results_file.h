// Results of cells on disk, one line of JSON each, appended as they are computed.
#ifndef DPAR_TESTS_LAB_RESULTS_FILE_H_
#define DPAR_TESTS_LAB_RESULTS_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/lab/cell.h"

namespace dpar::lab {

// A run that is killed loses only the cells that it was at: a line without its end is dropped when the file is next
// opened. Not thread-safe.
class ResultsFile {
 public:
  // Reads the file, or makes it, and reads the files of `known`, whose cells are found like its own; where several have
  // a cell, the first counts. FAILED_PRECONDITION while another process has the file open, INVALID_FIELD `results` or
  // `known` when one cannot be opened or holds a line that is no result.
  static absl::StatusOr<ResultsFile> Open(const std::string& path, const std::vector<std::string>& known);
  ~ResultsFile();
  ResultsFile(ResultsFile&& other) noexcept;
  ResultsFile& operator=(ResultsFile&&) = delete;

  // nullptr for a cell that was not computed. Good until the next Append.
  [[nodiscard]] const CellResult* Find(const Cell& cell) const;
  absl::Status Append(const Cell& cell, const CellResult& result);

 private:
  ResultsFile(std::string path, int file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  int file_;
  std::map<std::string, CellResult> results_;  // by the text of the key
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_RESULTS_FILE_H_
