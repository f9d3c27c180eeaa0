// One row of a table to one row of features. It reads the row and the schema and nothing else, so that no row's
// features depend on another row (PRIVACY: only row-wise preprocessing is free).
//
// Every value becomes numbers whose magnitudes add up to 1, so that under the transform SQRT_UNIT all columns have the
// same length, whatever their widths. A cell of text has as many values as words, of which up to 8 count as much:
//   number, date  weights of the two nearest of 16 knots over the range, by distance; on a log scale of the logarithm
//   category      1 at the value's place
//   flag          1 at the first place for yes, at the second for no
//   text          at the place XXH64(word, 0) mod width how often each word stands there, scaled to a sum of 8 for more
//                 than 8 words; words are runs of letters, digits and bytes above 127, in lower-case ASCII; the first
//                 64 count
//   vector        sign(v) v^2 / |v|^2, of which SQRT_UNIT makes v / |v|
// A value outside of the range or list is 1 at the place `other`, a missing one 1 at the place `missing`. A row without
// any value has no features at all: it is null.
#ifndef DPAR_CORE_TABLE_ROW_ENCODER_H_
#define DPAR_CORE_TABLE_ROW_ENCODER_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/table/schema.h"
#include "core/table/table_reader.h"

namespace dpar {

// Whether a cell stands for no value: empty, NA, N/A, NaN, nan, null or NULL.
bool IsMissing(absl::string_view cell);
// yes, true, t, y, 1 or no, false, f, n, 0 in any case.
bool ParseFlag(absl::string_view cell, bool& value);
// A finite number with a decimal point or, in a table that semicolons separate, a decimal comma.
bool ParseNumber(absl::string_view cell, char separator, double& value);

class RowEncoder {
 public:
  struct Row {
    std::vector<int32_t> columns;  // ascending
    std::vector<float> values;
    std::vector<size_t> others;  // indices of columns whose value became `other`
  };

  // `schema` outlives the encoder. INVALID_ARGUMENT / INVALID_GRAPH names a column that the table lacks, or that the
  // schema does not know.
  static absl::StatusOr<RowEncoder> Make(const TableSchema& schema, const TableReader& table);

  // The column that Row.others counts by.
  [[nodiscard]] const ColumnSchema& column(size_t index) const { return *sources_[index].schema; }

  // Encodes the table's current record. Errors name file, line, column and what was expected.
  absl::Status Encode(const TableReader& table, Row& row);

 private:
  // A column of the schema, where its cells are, and where its features begin.
  struct Source {
    const ColumnSchema* schema = nullptr;
    std::vector<size_t> fields;
    int32_t first = 0;
    absl::flat_hash_map<absl::string_view, int32_t> places;  // of a category's values
  };

  // False if the value is missing.
  absl::StatusOr<bool> EncodeColumn(const TableReader& table, size_t index, Row& row);
  void EncodePosition(const Source& source, double value, size_t index, Row& row) const;
  absl::StatusOr<bool> EncodeVector(const TableReader& table, const Source& source, Row& row);
  absl::Status ReadBracketed(const TableReader& table, const Source& source);
  void EncodeWords(absl::string_view text, const Source& source, size_t index, Row& row);
  static void AddOther(const Source& source, size_t index, Row& row);

  std::vector<Source> sources_;
  std::vector<double> vector_;  // of the current cell
  std::vector<int32_t> words_;
  std::string word_;
};

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_ROW_ENCODER_H_
