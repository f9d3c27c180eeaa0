#include "client/cli/errors.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/format.h"
#include "core/error.h"
#include "core/graph/local_graph.h"

namespace dpar {
namespace {

using Metadata = std::map<std::string, std::string>;

struct Reason {
  v1::ErrorReason reason = v1::ERROR_REASON_UNSPECIFIED;
  Metadata metadata;
};

Reason ReasonOf(const absl::Status& status) {
  Reason result;
  if (const auto info = GetErrorInfo(status)) {
    v1::ErrorReason_Parse(info->reason(), &result.reason);
    result.metadata = Metadata(info->metadata().begin(), info->metadata().end());
  }
  return result;
}

std::string Get(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  return found == metadata.end() ? "" : found->second;
}

int64_t Units(const Metadata& metadata, const std::string& key) {
  int64_t units = 0;
  return absl::SimpleAtoi(Get(metadata, key), &units) ? units : 0;
}

std::string Number(const Metadata& metadata, const std::string& key) {
  double value = 0;
  return absl::SimpleAtod(Get(metadata, key), &value) ? FormatNumber(value) : "?";
}

std::string OrPlaceholder(const std::string& text, const std::string& placeholder) {
  return text.empty() ? placeholder : text;
}

double LargestEpsilon(const Metadata& metadata) {
  double largest = 0;
  return absl::SimpleAtod(Get(metadata, "largest_admissible_epsilon"), &largest) ? largest : 0;
}

std::vector<std::string> BudgetDetails(const Metadata& metadata) {
  const int64_t cap = Units(metadata, "cap_units");
  const auto share = [&](const std::string& key) { return FormatPercent(Units(metadata, key), cap); };
  return {
      absl::StrCat("asked     ", share("asked_units"), " of the cap (epsilon ", Number(metadata, "asked_epsilon"),
                   " at delta ", Number(metadata, "delta"), ")"),
      absl::StrCat("spent     ", share("posted_units")),
      absl::StrCat("reserved  ", share("reserved_units")),
      absl::StrCat("left      ", share("left_units")),
      absl::StrCat("largest   epsilon ", FormatNumberDown(LargestEpsilon(metadata)), " would be admitted now"),
  };
}

std::vector<std::string> BudgetHints(const Metadata& metadata, const ErrorContext& context) {
  const std::string dataset = OrPlaceholder(context.dataset, "DATASET");
  std::vector<std::string> hints;
  const double largest = LargestEpsilon(metadata);
  if (largest > 0) {
    hints.push_back(absl::StrCat("dpar train ", dataset, " --epsilon ", FormatNumberDown(largest)));
  }
  if (Units(metadata, "reserved_units") > 0) {
    hints.push_back("dpar cancel JOB   (gives back what a waiting job holds; dpar jobs lists them)");
  }
  hints.push_back(absl::StrCat("dpar population ", dataset, " --entries   (what was spent on what)"));
  return hints;
}

std::vector<std::string> UnavailableHints(const absl::Status& status, const ErrorContext& context) {
  const std::string server = OrPlaceholder(context.server, "127.0.0.1:7443");
  const std::string message(status.message());
  if (absl::StrContains(message, "certificate verify failed") || absl::StrContains(message, "andshake")) {
    return {absl::StrCat("check --ca or DPAR_CA: it must be the tls/ca.pem of the server at ", server),
            "check --server: its name must be one the server's certificate carries (dpard init --tls-name)"};
  }
  std::vector<std::string> hints = {absl::StrCat("dpard --data-dir DIR --listen ", server, "   (starts the server)"),
                                    "check --server or DPAR_SERVER; DIR/address holds the address of a running server"};
  if (!context.job.empty()) {
    hints.push_back(absl::StrCat("dpar watch ", context.job, "   (the job goes on when the server is back)"));
  }
  return hints;
}

std::vector<std::string> TokenHints() {
  return {"dpar login --server HOST:PORT --ca FILE   (asks for a token and keeps it)",
          "export DPAR_TOKEN_FILE=FILE   (or DPAR_TOKEN=dpar_..., or --token-file FILE)",
          "an operator makes one: dpar token create --tenant ID --role owner"};
}

std::vector<std::string> AuthorityHints() {
  return {"dpar login --server HOST:PORT --ca FILE   (keeps both, and a token)",
          "export DPAR_CA=DIR/tls/ca.pem   (DIR is the server's --data-dir)"};
}

std::vector<std::string> FieldHints(const Metadata& metadata) {
  if (metadata.count("table") > 0) {
    return {
        "dpar graph schema NODES EDGES -o FILE.yaml   (drafts what the columns of two tables are)",
        "then --schema FILE.yaml --nodes NODES --edges EDGES in place of a graph file, with dpar upload, dpar graph "
        "convert and dpar graph split; dpar predict takes --nodes and --edges"};
  }
  return Get(metadata, "field") == "ca" ? AuthorityHints() : std::vector<std::string>();
}

std::vector<std::string> GraphHints(const Metadata& metadata, const ErrorContext& context) {
  if (metadata.count("table") > 0) {
    return {"correct the table or the schema; docs/your-data.md says what each type of column takes"};
  }
  return {context.command == "graph inspect"
              ? "dpar graph convert FILE -o graph.npz   (reads GraphML, which inspect does not)"
              : "dpar graph inspect FILE   (checks the file without sending it)"};
}

std::vector<std::string> ClosedHints(const Metadata& metadata) {
  const std::string into = Get(metadata, "merged_into");
  return {into.empty() ? "dpar population show POPULATION   (shows why); fresh budget exists only for other people"
                       : absl::StrCat("name ", into, ", which holds its people now")};
}

std::vector<std::string> PopulationHints(const Reason& reason) {
  switch (reason.reason) {
    case v1::CONTENT_HAS_BUDGET:
      return {"dpar upload FILE   (without --public; its budget goes on)"};
    case v1::CONTENT_WAS_PUBLIC:
      return {"dpar upload FILE --public   (no budget can promise anything about it any more)"};
    case v1::CONTENT_HAS_POPULATION:
      return {absl::StrCat("dpar upload FILE --population ", Get(reason.metadata, "population")),
              "dpar population merge A --into B --reason TEXT   (if both hold the same people)"};
    case v1::POPULATION_IN_USE:
      return {"dpar jobs, then dpar cancel JOB or wait; then the same command again"};
    case v1::POPULATION_CLOSED:
      return ClosedHints(reason.metadata);
    case v1::BUDGET_FROZEN:
      return {
          "dpar population show POPULATION   (shows why); an operator settles it: dpard thaw POPULATION --reason "
          "TEXT"};
    default:
      return {};
  }
}

std::vector<std::string> ReasonHints(const Reason& reason, const ErrorContext& context) {
  const std::string dataset = OrPlaceholder(context.dataset, "DATASET");
  const std::string job = OrPlaceholder(context.job, "JOB");
  switch (reason.reason) {
    case v1::PRIVACY_BUDGET_EXHAUSTED:
      return BudgetHints(reason.metadata, context);
    case v1::TOKEN_MISSING:
    case v1::TOKEN_INVALID:
      return TokenHints();
    case v1::ROLE_INSUFFICIENT:
      return {absl::StrCat("use a token with the role ", OrPlaceholder(Get(reason.metadata, "required"), "needed"),
                           ": export DPAR_TOKEN_FILE=FILE")};
    case v1::SCOPE_INSUFFICIENT:
      return {absl::StrCat("use a token that was made with --scope ",
                           OrPlaceholder(Get(reason.metadata, "required"), "SCOPE"), ": export DPAR_TOKEN_FILE=FILE"),
              "dpar whoami   (shows what this one was made for)"};
    case v1::INVALID_FIELD:
      return FieldHints(reason.metadata);
    case v1::INVALID_GRAPH:
      return GraphHints(reason.metadata, context);
    case v1::UPLOAD_DIGEST_MISMATCH:
    case v1::UPLOAD_INCOMPLETE:
    case v1::UPLOAD_OFFSET_MISMATCH:
      return {"dpar upload FILE   (again, and leave the file alone meanwhile)"};
    case v1::RESOURCE_NOT_FOUND:
      if (reason.metadata.count("profile") > 0) {
        return {"dpar profile list   (shows those there are; dpar login makes one)"};
      }
      return {context.job.empty() ? "dpar datasets   (lists what there is; public data has no budget)"
                                  : "dpar jobs   (lists what there is)"};
    case v1::RESOURCE_EXISTS:
      return {"choose another id; dpar datasets, dpar tenant list show what is taken, deleted ids stay taken"};
    case v1::REQUEST_ID_REUSED:
      return {absl::StrCat("dpar ", context.command, "   (again: every run has a request id of its own)")};
    case v1::CAP_ABOVE_DEFAULT:
      return {"leave --cap-epsilon and --cap-delta out, or ask for less",
              "an operator raises a cap: dpar cap tenants/TENANT/populations/ID --epsilon E --reason TEXT"};
    case v1::PRIVACY_UNREACHABLE:
      return {"the same command with a larger epsilon or delta; dpar privacy calibrate shows what is reachable"};
    case v1::CONTENT_HAS_BUDGET:
    case v1::CONTENT_WAS_PUBLIC:
    case v1::CONTENT_HAS_POPULATION:
    case v1::POPULATION_IN_USE:
    case v1::POPULATION_CLOSED:
    case v1::BUDGET_FROZEN:
      return PopulationHints(reason);
    case v1::DATASET_OUT_OF_SERVICE:
      return {"dpar upload FILE   (again, under another id: its budget goes on)",
              "an operator restores the file: deploy/OPERATIONS.md, dpard check"};
    case v1::DATASET_IN_USE:
      return {"dpar jobs, then dpar cancel JOB"};
    case v1::JOB_NOT_SUCCEEDED:
      return {absl::StrCat("dpar watch ", job)};
    case v1::JOB_ENDED:
      return {"dpar jobs   (shows how it ended)"};
    case v1::LIMIT_EXCEEDED:
      return {"ask the operator to raise the limit (dpard --help lists them), or stay below it"};
    case v1::NOT_IMPLEMENTED:
      return {"leave that option out, or ask the operator for a newer dpard"};
    case v1::INTERNAL_FAULT:
    case v1::STORE_CORRUPT:
      return {"ask the operator to look at the server's log"};
    default:
      return {};
  }
}

std::vector<std::string> HintsOf(const absl::Status& status, const Reason& reason, const ErrorContext& context) {
  std::vector<std::string> hints = ReasonHints(reason, context);
  if (!hints.empty()) {
    return hints;
  }
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return UnavailableHints(status, context);
    case absl::StatusCode::kUnauthenticated:
      return TokenHints();
    case absl::StatusCode::kDataLoss:
      return {absl::StrCat("dpar ", context.command, "   (again)")};
    case absl::StatusCode::kCancelled:
      return {absl::StrCat("dpar ", context.command, "   (again, from the beginning)")};
    case absl::StatusCode::kDeadlineExceeded:
      return {absl::StrCat("dpar ", context.command, "   (again, when the server is less busy)")};
    default:
      return {absl::StrCat("dpar ", context.command.empty() ? "" : absl::StrCat(context.command, " "), "--help")};
  }
}

std::string MessageOf(const absl::Status& status, const Reason& reason, const ErrorContext& context) {
  const std::string message(status.message());
  if (absl::IsUnavailable(status) && reason.reason == v1::ERROR_REASON_UNSPECIFIED) {
    return absl::StrCat("cannot reach the server at ", OrPlaceholder(context.server, "127.0.0.1:7443"), ": ", message);
  }
  return message.empty() ? absl::StatusCodeToString(status.code()) : message;
}

}  // namespace

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) {
    return kDone;
  }
  switch (ReasonOf(status).reason) {
    case v1::PRIVACY_BUDGET_EXHAUSTED:
      return kRefusedByBudget;
    case v1::INVALID_FIELD:
      return kUsage;
    default:
      break;
  }
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return kNotAuthorised;
    case absl::StatusCode::kUnavailable:
      return kUnavailable;
    case absl::StatusCode::kCancelled:
      return kInterrupted;
    default:
      return kFailed;
  }
}

ErrorReport DescribeError(const absl::Status& status, const ErrorContext& context) {
  const Reason reason = ReasonOf(status);
  ErrorReport report;
  report.message = MessageOf(status, reason, context);
  if (reason.reason == v1::PRIVACY_BUDGET_EXHAUSTED) {
    report.details = BudgetDetails(reason.metadata);
  }
  report.hints = HintsOf(status, reason, context);
  return report;
}

nlohmann::ordered_json ErrorJson(const absl::Status& status, const ErrorContext& context) {
  const Reason reason = ReasonOf(status);
  const ErrorReport report = DescribeError(status, context);
  nlohmann::ordered_json json;
  json["code"] = absl::StatusCodeToString(status.code());
  json["reason"] = reason.reason == v1::ERROR_REASON_UNSPECIFIED ? "" : v1::ErrorReason_Name(reason.reason);
  json["message"] = report.message;
  json["metadata"] = reason.metadata;
  json["hint"] = report.hints.front();
  return json;
}

absl::Status AsLocal(const absl::Status& status) {
  if (absl::IsUnavailable(status)) {
    return absl::InternalError(status.message());
  }
  if (ReasonOf(status).reason == v1::INVALID_FIELD) {
    return absl::InvalidArgumentError(status.message());
  }
  return status;
}

absl::Status CheckOutputFile(absl::string_view field, const std::string& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error)) {
    return InvalidField(field, absl::StrCat("cannot write '", path, "': a file name is needed"));
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string directory = parent.empty() ? "." : parent;
  if (!std::filesystem::is_directory(directory, error)) {
    return InvalidField(field, absl::StrCat("cannot write '", path, "': '", directory, "' is not a directory"));
  }
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    return InvalidField(field, absl::StrCat("cannot write '", path, "': ", std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status CheckGraphInput(absl::string_view field, const std::string& path) {
  const absl::string_view name = absl::StripSuffix(path, ".gz");
  if (absl::EndsWithIgnoreCase(name, ".csv") || absl::EndsWithIgnoreCase(name, ".tsv")) {
    return MakeError(absl::StatusCode::kInvalidArgument, v1::INVALID_FIELD,
                     absl::StrCat("'", path, "' is a table, and a graph file is expected"),
                     {{"field", std::string(field)}, {"table", path}});
  }
  return CheckInputFile(field, path);
}

absl::Status CheckGraphOutput(absl::string_view field, const std::string& path) {
  if (!IsSealedName(path) && !IsNpzName(path)) {
    return InvalidField(field, absl::StrCat("--", field, " must end in .npz or .sealed; not '", path, "'"));
  }
  return CheckOutputFile(field, path);
}

}  // namespace dpar
