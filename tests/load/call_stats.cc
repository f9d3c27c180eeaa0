#include "tests/load/call_stats.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/end_to_end/harness.h"

namespace dpar::load {
namespace {

const std::set<std::string>& DocumentedLimits() {
  static const auto* limits = new std::set<std::string>{"RESOURCE_EXHAUSTED / LIMIT_EXCEEDED",
                                                        "FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED"};
  return *limits;
}

std::string NameOf(const grpc::Status& status) {
  const std::optional<google::rpc::ErrorInfo> info = e2e::ErrorInfoOf(status);
  return absl::StrCat(absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code())), " / ",
                      info.has_value() ? info->reason() : "no reason");
}

bool IsUnary(const std::string& method) { return method != "WriteUpload" && method != "WatchJob"; }

// The value below which `share` of them are. `sorted` is not empty.
double Percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

std::string Line(const std::string& name, std::vector<double> milliseconds, int64_t errors) {
  if (milliseconds.empty()) {
    return "";
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  return absl::StrFormat("  %-18s %8d %8d %10.1f %10.1f %10.1f\n", name, milliseconds.size(), errors,
                         Percentile(milliseconds, 0.5), Percentile(milliseconds, 0.99), milliseconds.back());
}

}  // namespace

void CallStats::Add(const std::string& method, absl::Duration duration, const grpc::Status& status) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Method& known = methods_[method];
  known.milliseconds.push_back(absl::ToDoubleMilliseconds(duration));
  if (status.ok()) {
    return;
  }
  const std::string name = NameOf(status);
  ++known.errors[name];
  if (!DocumentedLimits().contains(name)) {
    undocumented_.emplace(absl::StrCat(method, ": ", name), status.error_message());
  }
}

std::map<std::string, std::string> CallStats::Undocumented() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return undocumented_;
}

int64_t CallStats::Count(const std::string& method) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = methods_.find(method);
  return found == methods_.end() ? 0 : static_cast<int64_t>(found->second.milliseconds.size());
}

std::string CallStats::Table() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::string table =
      absl::StrFormat("  %-18s %8s %8s %10s %10s %10s\n", "call", "count", "errors", "p50 ms", "p99 ms", "max ms");
  std::vector<double> unary;
  std::string errors;
  int64_t unary_errors = 0;
  for (const auto& [name, method] : methods_) {
    int64_t count = 0;
    for (const auto& [error, times] : method.errors) {
      count += times;
      absl::StrAppend(&errors, "  ", name, ": ", error, ", ", times, " times\n");
    }
    absl::StrAppend(&table, Line(name, method.milliseconds, count));
    if (IsUnary(name)) {
      unary.insert(unary.end(), method.milliseconds.begin(), method.milliseconds.end());
      unary_errors += count;
    }
  }
  return absl::StrCat(table, Line("all unary", unary, unary_errors), errors.empty() ? "  no errors\n" : errors);
}

}  // namespace dpar::load
