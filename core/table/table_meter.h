// Asks a TableProgress now and then while a table is read.
#ifndef DPAR_CORE_TABLE_TABLE_METER_H_
#define DPAR_CORE_TABLE_TABLE_METER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/table/table_graph.h"
#include "core/table/table_reader.h"

namespace dpar {

// Both must outlive it.
class TableMeter {
 public:
  TableMeter(const TableProgress& progress, absl::string_view stage) : progress_(progress), stage_(stage) {}

  // CANCELLED once `progress` says no.
  absl::Status Count(const TableReader& table) {
    return ++records_ % kRecordsPerQuestion != 1 || progress_(stage_, table.fraction()) ? absl::OkStatus() : Stopped();
  }
  [[nodiscard]] absl::Status Finish() const { return progress_(stage_, 1) ? absl::OkStatus() : Stopped(); }

 private:
  static constexpr int64_t kRecordsPerQuestion = 1 << 14;

  static absl::Status Stopped() { return absl::CancelledError("reading the tables was stopped"); }

  const TableProgress& progress_;
  absl::string_view stage_;
  int64_t records_ = 0;
};

}  // namespace dpar

#endif  // DPAR_CORE_TABLE_TABLE_METER_H_
