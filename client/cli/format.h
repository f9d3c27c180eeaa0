#ifndef DPAR_CLIENT_CLI_FORMAT_H_
#define DPAR_CLIENT_CLI_FORMAT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/timestamp.pb.h"

namespace dpar {

// "999 B", "1.2 kB", "34.5 MB": powers of 1000.
std::string FormatBytes(int64_t bytes);
// "1,234,567".
std::string FormatCount(int64_t count);
// "0:07", "12:34", "1:02:03". Negative is 0, infinite is "-".
std::string FormatClock(absl::Duration duration);
// "5s", "3m", "2h", "4d": one unit, rounded down.
std::string FormatAge(absl::Duration age);
// Four significant digits: "0.7812", "1", "1e-05".
std::string FormatNumber(double value);
// The same, never above the value: for bounds that must hold as they are shown.
std::string FormatNumberDown(double value);
// Six significant digits, never below the value: for prices.
std::string FormatNumberUp(double value);
// "12.3%"; "<0.1%" for a little, so that only nothing reads as 0.0%.
std::string FormatPercent(int64_t part, int64_t whole);

absl::Time FromProto(const google::protobuf::Timestamp& timestamp);
// RFC 3339 in UTC, to the second.
std::string FormatTime(const google::protobuf::Timestamp& timestamp);

// A bar of `width` columns without brackets. The fraction is taken into 0..1.
std::string Bar(double fraction, int width, bool utf8);

// Columns that UTF-8 text takes, for text without wide or combining characters.
int DisplayWidth(absl::string_view text);
// At most `width` columns, with "~" at the end when something was cut.
std::string Truncate(absl::string_view text, int width);

class Table {
 public:
  // `shrinkable` columns are cut, in the order given, when a row does not fit.
  Table(std::vector<std::string> header, std::vector<size_t> shrinkable);
  void Add(std::vector<std::string> row);
  // Rows with a line end each. `width` 0 is no limit.
  [[nodiscard]] std::string Render(int width) const;

 private:
  [[nodiscard]] std::vector<int> ColumnWidths(int width) const;

  std::vector<std::vector<std::string>> rows_;  // the first is the header
  std::vector<size_t> shrinkable_;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_FORMAT_H_
