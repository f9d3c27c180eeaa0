// The only place that maps error reasons to exit codes and hints.
#ifndef DPAR_CLIENT_CLI_ERRORS_H_
#define DPAR_CLIENT_CLI_ERRORS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/sdk/input_file.h"
#include "nlohmann/json.hpp"

namespace dpar {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kRefusedByBudget = 3;
inline constexpr int kNotAuthorised = 4;
inline constexpr int kUnavailable = 5;
inline constexpr int kInterrupted = 130;

int ExitCodeOf(const absl::Status& status);

struct ErrorContext {
  std::string command;  // "train", "graph inspect"
  std::string server;   // host:port
  std::string dataset;  // id or name, where the command has one
  std::string job;
};

struct ErrorReport {
  std::string message;               // what happened and why
  std::vector<std::string> details;  // figures, a line each
  std::vector<std::string> hints;    // what to try next, a line each; never empty
};
ErrorReport DescribeError(const absl::Status& status, const ErrorContext& context);

// {"code", "reason", "message", "metadata", "hint"}.
nlohmann::ordered_json ErrorJson(const absl::Status& status, const ErrorContext& context);

// Reports a failure to read, write or use a local file, as neither an unavailable server nor wrong usage.
absl::Status AsLocal(const absl::Status& status);

// CheckInputFile for a graph's file, which a table is not.
absl::Status CheckGraphInput(absl::string_view field, const std::string& path);

// INVALID_FIELD unless a file can be made at `path`: it is no directory, and its directory exists and is writable.
absl::Status CheckOutputFile(absl::string_view field, const std::string& path);
// The same for a graph's file, whose name must end in .npz or .sealed.
absl::Status CheckGraphOutput(absl::string_view field, const std::string& path);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_ERRORS_H_
