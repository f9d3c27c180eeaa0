#include "client/cli/format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace dpar {
namespace {

constexpr int kColumnGap = 2;
constexpr int kNarrowestColumn = 8;

bool StartsCharacter(char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }

}  // namespace

std::string FormatBytes(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"kB", "MB", "GB", "TB", "PB"};
  if (std::llabs(bytes) < 1000) {
    return absl::StrCat(bytes, " B");
  }
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  // 999.95 would print as 1000.0.
  while (std::fabs(value) >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string FormatCount(int64_t count) {
  std::string digits = absl::StrCat(count);
  const std::ptrdiff_t first = count < 0 ? 1 : 0;
  for (auto place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > first; place -= 3) {
    digits.insert(static_cast<size_t>(place), 1, ',');
  }
  return digits;
}

std::string FormatClock(absl::Duration duration) {
  if (duration == absl::InfiniteDuration()) {
    return "-";
  }
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(duration));
  if (seconds >= 3600) {
    return absl::StrFormat("%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
  }
  return absl::StrFormat("%d:%02d", seconds / 60, seconds % 60);
}

std::string FormatAge(absl::Duration age) {
  const int64_t seconds = std::max<int64_t>(0, absl::ToInt64Seconds(age));
  if (seconds < 60) {
    return absl::StrCat(seconds, "s");
  }
  if (seconds < 3600) {
    return absl::StrCat(seconds / 60, "m");
  }
  if (seconds < 86400) {
    return absl::StrCat(seconds / 3600, "h");
  }
  return absl::StrCat(seconds / 86400, "d");
}

std::string FormatNumber(double value) { return absl::StrFormat("%.4g", value); }

std::string FormatNumberDown(double value) {
  const std::string nearest = FormatNumber(value);
  double shown = 0;
  if (!absl::SimpleAtod(nearest, &shown) || !std::isfinite(value) || shown <= value) {
    return nearest;
  }
  const double step = std::pow(10.0, std::floor(std::log10(std::fabs(value))) - 3);
  return FormatNumber(shown - step);
}

std::string FormatNumberUp(double value) {
  const std::string nearest = absl::StrFormat("%.6g", value);
  double shown = 0;
  if (!absl::SimpleAtod(nearest, &shown) || !std::isfinite(value) || shown >= value) {
    return nearest;
  }
  const double step = std::pow(10.0, std::floor(std::log10(std::fabs(value))) - 5);
  return absl::StrFormat("%.6g", shown + step);
}

std::string FormatPercent(int64_t part, int64_t whole) {
  if (whole <= 0) {
    return "-";
  }
  const double percent = 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  if (part > 0 && percent < 0.1) {
    return "<0.1%";
  }
  return absl::StrFormat("%.1f%%", percent);
}

absl::Time FromProto(const google::protobuf::Timestamp& timestamp) {
  return absl::FromUnixSeconds(timestamp.seconds()) + absl::Nanoseconds(timestamp.nanos());
}

std::string FormatTime(const google::protobuf::Timestamp& timestamp) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", FromProto(timestamp), absl::UTCTimeZone());
}

std::string Bar(double fraction, int width, bool utf8) {
  const double inside = std::isfinite(fraction) ? std::clamp(fraction, 0.0, 1.0) : 0.0;
  const int filled = static_cast<int>(inside * width);
  std::string bar;
  for (int column = 0; column < width; ++column) {
    const bool full = column < filled;
    bar += utf8 ? (full ? "█" : "░") : (full ? "#" : "-");
  }
  return bar;
}

int DisplayWidth(absl::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), StartsCharacter));
}

std::string Truncate(absl::string_view text, int width) {
  if (DisplayWidth(text) <= width) {
    return std::string(text);
  }
  std::string cut;
  int columns = 0;
  for (const char c : text) {
    columns += StartsCharacter(c) ? 1 : 0;
    if (columns >= width) {
      break;
    }
    cut += c;
  }
  return width > 0 ? cut + "~" : "";
}

Table::Table(std::vector<std::string> header, std::vector<size_t> shrinkable) : shrinkable_(std::move(shrinkable)) {
  rows_.push_back(std::move(header));
}

void Table::Add(std::vector<std::string> row) {
  row.resize(rows_.front().size());
  rows_.push_back(std::move(row));
}

std::vector<int> Table::ColumnWidths(int width) const {
  std::vector<int> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], DisplayWidth(row[column]));
    }
  }
  int total = kColumnGap * (static_cast<int>(widths.size()) - 1);
  for (const int column : widths) {
    total += column;
  }
  for (const size_t column : shrinkable_) {
    const int excess = width > 0 ? std::max(0, total - width) : 0;
    const int cut = std::clamp(excess, 0, std::max(0, widths[column] - kNarrowestColumn));
    widths[column] -= cut;
    total -= cut;
  }
  return widths;
}

std::string Table::Render(int width) const {
  const std::vector<int> widths = ColumnWidths(width);
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t column = 0; column < row.size(); ++column) {
      const std::string cell = Truncate(row[column], widths[column]);
      line += cell;
      if (column + 1 < row.size()) {
        line.append(static_cast<size_t>(widths[column] - DisplayWidth(cell) + kColumnGap), ' ');
      }
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace dpar
