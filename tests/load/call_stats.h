// What a load saw: calls by method, errors by code and reason, and how long calls took.
#ifndef DPAR_TESTS_LOAD_CALL_STATS_H_
#define DPAR_TESTS_LOAD_CALL_STATS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace dpar::load {

// Thread-safe.
class CallStats {
 public:
  // Runs `call`, whose answer has a status, and takes note of it.
  template <typename Call>
  auto Time(const std::string& method, const Call& call) {
    const absl::Time start = absl::Now();
    auto answer = call();
    Add(method, absl::Now() - start, answer.status);
    return answer;
  }

  void Add(const std::string& method, absl::Duration duration, const grpc::Status& status);

  // "CODE / REASON" of every error that is not a documented limit: RESOURCE_EXHAUSTED / LIMIT_EXCEEDED and
  // FAILED_PRECONDITION / PRIVACY_BUDGET_EXHAUSTED, with the first message of each.
  [[nodiscard]] std::map<std::string, std::string> Undocumented() const;
  [[nodiscard]] int64_t Count(const std::string& method) const;

  // A line for each method, with how often it was called, its errors, and its 50th and 99th percentile and longest
  // time; then one for all unary calls, which WriteUpload and WatchJob are not among.
  [[nodiscard]] std::string Table() const;

 private:
  struct Method {
    std::vector<double> milliseconds;
    std::map<std::string, int64_t> errors;  // by "CODE / REASON"
  };

  mutable std::mutex mutex_;
  std::map<std::string, Method> methods_;
  std::map<std::string, std::string> undocumented_;
};

}  // namespace dpar::load

#endif  // DPAR_TESTS_LOAD_CALL_STATS_H_
