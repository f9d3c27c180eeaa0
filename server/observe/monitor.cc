#include "server/observe/monitor.h"

#include <arpa/inet.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "prometheus/metric_family.h"
#include "prometheus/text_serializer.h"
#include "server/observe/gauge_family.h"
#include "server/steady_time.h"

namespace dpar {
namespace {

constexpr int kNotFound = 404;
constexpr int kMethodNotAllowed = 405;
constexpr int kMisdirected = 421;
constexpr int kUnavailable = 503;
constexpr size_t kHttpThreads = 2;
constexpr absl::Duration kProbePeriod = absl::Seconds(2);
constexpr absl::Duration kBudgetPeriod = absl::Seconds(5);
// Rest after work on budgets, in multiples of its time: it takes a tenth of a core and of a connection.
constexpr int64_t kRestForOne = 9;

// Of a host, with or without its port.
bool IsLoopback(absl::string_view host) {
  const absl::string_view name =
      absl::StartsWith(host, "[") ? host.substr(0, host.find(']') + 1) : host.substr(0, host.find(':'));
  in_addr address = {};
  return name == "localhost" || name == "[::1]" ||
         (absl::StartsWith(name, "127.") && inet_pton(AF_INET, std::string(name).c_str(), &address) == 1);
}

void Append(std::vector<prometheus::MetricFamily> more, std::vector<prometheus::MetricFamily>& families) {
  std::move(more.begin(), more.end(), std::back_inserter(families));
}

}  // namespace

Monitor::Monitor(Database& database, const Metrics& metrics, std::vector<Need> needs)
    : metrics_(metrics),
      probe_(database),
      budgets_(database),
      needs_(std::move(needs)),
      missing_(needs_.size()),
      http_([this](const HttpRequest& request) { return Answer(request); }, kHttpThreads) {}

absl::StatusOr<int> Monitor::Start(const std::string& host, int port) {
  on_loopback_ = IsLoopback(host);
  absl::StatusOr<int> bound = http_.Start(host, port);
  if (bound.ok()) {
    probing_ = std::make_unique<Periodic>([this] {
      probe_.Refresh();
      for (size_t i = 0; i < needs_.size(); ++i) {
        missing_[i] = !needs_[i].met();
      }
      return kProbePeriod;
    });
    budgeting_ = std::make_unique<Periodic>([this] { return StepBudgets(); });
  }
  return bound;
}

HttpAnswer Monitor::Answer(const HttpRequest& request) const {
  if (request.method != "GET") {
    return {.status = kMethodNotAllowed, .body = "only GET is answered\n", .headers = {{"Allow", "GET"}}};
  }
  // A browser on this machine that was sent here under another site's name must not read it for that site.
  if (const std::string host = request.header("Host"); on_loopback_ && !host.empty() && !IsLoopback(host)) {
    return {.status = kMisdirected, .body = "ask for this address by its own name\n"};
  }
  if (request.path == "/metrics") {
    return ShowMetrics();
  }
  if (request.path == "/readyz") {
    return ShowReadiness();
  }
  return request.path == "/livez" ? HttpAnswer{.body = "ok\n"}
                                  : HttpAnswer{.status = kNotFound, .body = "there is nothing at this path\n"};
}

HttpAnswer Monitor::ShowMetrics() const {
  std::vector<prometheus::MetricFamily> families = metrics_.Collect();
  Append(probe_.Collect(absl::Now()), families);
  Append(budgets_.Collect(), families);
  for (size_t i = 0; i < needs_.size(); ++i) {
    families.push_back(GaugeFamily(absl::StrCat("dpar_", needs_[i].name, "_up"), needs_[i].help));
    AddGauge({}, missing_[i] ? 0 : 1, families.back());
  }
  std::sort(families.begin(), families.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
          .body = prometheus::TextSerializer().Serialize(families)};
}

HttpAnswer Monitor::ShowReadiness() const {
  switch (phase_.load()) {
    case Phase::kStarting:
      return {.status = kUnavailable, .body = "starting\n"};
    case Phase::kDraining:
      return {.status = kUnavailable, .body = "draining\n"};
    case Phase::kServing:
      break;
  }
  if (!probe_.Answers(absl::Now())) {
    return {.status = kUnavailable, .body = "store\n"};
  }
  for (size_t i = 0; i < needs_.size(); ++i) {
    if (missing_[i]) {
      return {.status = kUnavailable, .body = absl::StrCat(needs_[i].name, "\n")};
    }
  }
  return {.body = "ok\n"};
}

absl::Duration Monitor::StepBudgets() {
  const absl::Time start = SteadyNow();
  if (start >= next_accounts_) {
    // The probe reports a failed store; here nothing is shown.
    budgets_.RefreshAccounts().IgnoreError();
    const absl::Time end = SteadyNow();
    next_accounts_ = end + std::max(kBudgetPeriod, kRestForOne * (end - start));
  } else if (start >= next_epsilon_) {
    const absl::StatusOr<bool> computed = budgets_.RefreshOneEpsilon();
    const absl::Time end = SteadyNow();
    const bool idle = computed.ok() && !*computed;
    next_epsilon_ = idle ? next_accounts_ : end + kRestForOne * (end - start);
  }
  return std::max(absl::ZeroDuration(), std::min(next_accounts_, next_epsilon_) - SteadyNow());
}

}  // namespace dpar
