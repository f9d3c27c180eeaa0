#include "core/table/bank.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/graph/text_output.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr const char* kSchema =
    R"(# What the columns of accounts.csv and transfers.csv are. All of it is known without the rows.
nodes:
  id: account
  label: {column: segment, classes: [private, business, dormant]}
  columns:
    age: {type: number, range: [0, 120]}
    balance: {type: number, range: [0, 10000000], scale: log}
    logins: {type: number, range: [0, 100]}
    opened: {type: date, range: [1990-01-01, 2030-12-31]}
    country: {type: category, values: [AT, BE, CH, DE, ES, FR, IT, LU, NL, PL]}
    branch: {type: category, values: [centre, north, south, online]}
    card: {type: flag}
    purpose: {type: text, width: 64}
    phone: {type: ignore}
edges: {source: from, target: to}
)";

constexpr size_t kSegments = 3;
constexpr std::array<const char*, kSegments> kNames = {"private", "business", "dormant"};
constexpr std::array<double, kSegments> kShares = {0.55, 0.30, 0.15};
constexpr std::array<const char*, 10> kCountries = {"AT", "BE", "CH", "DE", "ES", "FR", "IT", "LU", "NL", "PL"};
constexpr std::array<const char*, 4> kBranches = {"centre", "north", "south", "online"};
// By segment, then words that any may have.
constexpr std::array<std::array<const char*, 6>, kSegments + 1> kWords = {{
    {"salary", "rent", "family", "holiday", "groceries", "savings"},
    {"invoices", "payroll", "supplies", "tax", "export", "rent"},
    {"inheritance", "savings", "deposit", "old", "unknown", "closing"},
    {"account", "monthly", "payments", "transfer", "general", "other"},
}};
constexpr double kTransfersPerAccount = 4;
constexpr double kSameSegment = 0.7;  // probability that a transfer stays in its segment
constexpr double kMissing = 0.05;
constexpr double kUnlabelledShare = 0.02;
constexpr double kOutside = 0.002;  // of transfers that name an account of another bank
constexpr double kFirstDay = 7305;  // 1990-01-01
constexpr double kDays = 12'700;

double Normal(RandomSource& random) {
  return std::sqrt(-2 * std::log(UniformReal(random))) * std::cos(2 * std::numbers::pi * UniformReal(random));
}

bool Chance(RandomSource& random, double probability) { return UniformReal(random) < probability; }

template <size_t count>
const char* OneOf(RandomSource& random, const std::array<const char*, count>& values) {
  return values[UniformBelow(random, count)];
}

std::string Id(int64_t account) { return absl::StrFormat("AC-%07d", account); }

std::string Purpose(RandomSource& random, size_t segment) {
  std::string text;
  const uint64_t words = 2 + UniformBelow(random, 3);
  for (uint64_t i = 0; i < words; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : " ", OneOf(random, kWords[Chance(random, 0.35) ? segment : kSegments]));
  }
  return Chance(random, 0.1) ? absl::StrCat("\"", text, ", \"\"see file\"\"\"") : text;
}

// Each value tells something about the segment, and none tells it all.
std::string AccountRow(RandomSource& random, int64_t account, size_t segment) {
  constexpr std::array<double, kSegments> kAge = {42, 50, 63};
  constexpr std::array<double, kSegments> kBalance = {7.5, 9.5, 8.5};  // of the logarithm
  constexpr std::array<double, kSegments> kLogins = {14, 24, 4};
  constexpr std::array<double, kSegments> kOpened = {0.65, 0.55, 0.35};  // of the bank's years
  const auto or_missing = [&random](std::string text) { return Chance(random, kMissing) ? "" : text; };
  const double age = std::clamp(kAge[segment] + 14 * Normal(random), 18.0, 100.0);
  const double balance = std::exp(kBalance[segment] + 1.6 * Normal(random));
  const double logins = std::clamp(kLogins[segment] + 9 * Normal(random), 0.0, 99.0);
  const double opened = std::clamp(kOpened[segment] + 0.2 * Normal(random), 0.0, 1.0);
  const std::string country = Chance(random, 0.4) ? kCountries[3 * segment] : OneOf(random, kCountries);
  const std::string branch = Chance(random, 0.3) ? kBranches[segment] : OneOf(random, kBranches);
  const bool card = Chance(random, segment == 2 ? 0.3 : 0.7);
  return absl::StrCat(
      Id(account), ",", Chance(random, kUnlabelledShare) ? "" : kNames[segment], ",",
      or_missing(absl::StrFormat("%.0f", age)), ",", or_missing(absl::StrFormat("%.2f", std::min(balance, 9e6))), ",",
      or_missing(absl::StrFormat("%.0f", logins)), ",", or_missing(FormatDate(std::floor(kFirstDay + kDays * opened))),
      ",", or_missing(Chance(random, 0.01) ? "XK" : country), ",", or_missing(branch), ",",
      or_missing(card ? "yes" : "no"), ",", or_missing(Purpose(random, segment)), ",",
      absl::StrFormat("+43%09d", UniformBelow(random, 1'000'000'000)), "\n");
}

}  // namespace

absl::StatusOr<BankTables> WriteBankTables(const std::string& directory, int64_t accounts, RandomSource& random) {
  DPAR_RETURN_IF_ERROR(ValidateRange("nodes", accounts, int64_t{10}, int64_t{20'000'000}));
  BankTables bank;
  bank.files = {absl::StrCat(directory, "/accounts.csv"), absl::StrCat(directory, "/transfers.csv")};
  bank.schema = absl::StrCat(directory, "/accounts.schema.yaml");
  bank.accounts = accounts;
  bank.transfers = static_cast<int64_t>(kTransfersPerAccount * static_cast<double>(accounts));
  DPAR_ASSIGN_OR_RETURN(TextOutput nodes, TextOutput::Create(bank.files.nodes));
  nodes.Add("account,segment,age,balance,logins,opened,country,branch,card,purpose,phone\n");
  std::array<std::vector<int32_t>, kSegments> members;
  std::vector<uint8_t> segments;
  for (int64_t account = 0; account < accounts; ++account) {
    const double draw = UniformReal(random);
    const size_t segment = draw < kShares[0] ? 0 : draw < kShares[0] + kShares[1] ? 1 : 2;
    members[segment].push_back(static_cast<int32_t>(account));
    segments.push_back(static_cast<uint8_t>(segment));
    nodes.Add(AccountRow(random, account, segment));
  }
  DPAR_RETURN_IF_ERROR(nodes.Finish());
  DPAR_ASSIGN_OR_RETURN(TextOutput edges, TextOutput::Create(bank.files.edges));
  edges.Add("from,to,amount,day\n");
  for (int64_t transfer = 0; transfer < bank.transfers; ++transfer) {
    const uint64_t from = UniformBelow(random, static_cast<uint64_t>(accounts));
    const std::vector<int32_t>& own = members[segments[from]];
    const int64_t to = Chance(random, kSameSegment)
                           ? own[UniformBelow(random, own.size())]
                           : static_cast<int64_t>(UniformBelow(random, static_cast<uint64_t>(accounts)));
    edges.Add(
        absl::StrCat(Id(static_cast<int64_t>(from)), ",",
                     Chance(random, kOutside) ? absl::StrFormat("EXT-%04d", UniformBelow(random, 10'000)) : Id(to), ",",
                     absl::StrFormat("%.2f", std::exp(4 + 1.5 * Normal(random))), ",",
                     FormatDate(std::floor(kFirstDay + kDays * UniformReal(random))), "\n"));
  }
  DPAR_RETURN_IF_ERROR(edges.Finish());
  DPAR_ASSIGN_OR_RETURN(TextOutput schema, TextOutput::Create(bank.schema));
  schema.Add(kSchema);
  DPAR_RETURN_IF_ERROR(schema.Finish());
  return bank;
}

}  // namespace dpar
