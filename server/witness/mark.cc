#include "server/witness/mark.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/certificate/digest.h"
#include "core/error.h"

namespace dpar {
namespace {

constexpr absl::string_view kTitle = "dpar-mark ";
constexpr int64_t kVersion = 1;
constexpr absl::string_view kDigestLine = "sha256 ";
constexpr size_t kHashDigits = 64;
// Title, population, terms, one entry, digest.
constexpr size_t kFewestLines = 5;

absl::Status Unreadable(absl::string_view what) {
  return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, absl::StrCat("not a mark: ", what));
}

bool IsHash(absl::string_view text) {
  return text.size() == kHashDigits &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// As StrCat writes numbers: no sign, no leading zero.
bool ReadNumber(absl::string_view text, int64_t& value) {
  return absl::SimpleAtoi(text, &value) && value >= 0 && absl::StrCat(value) == text;
}

bool ReadCheckpoint(absl::string_view line, Checkpoint& checkpoint) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 4 || words[0] != "entry" || !ReadNumber(words[1], checkpoint.sequence) ||
      checkpoint.sequence < 1 || !IsHash(words[2]) || !ReadNumber(words[3], checkpoint.spent_units)) {
    return false;
  }
  checkpoint.hash = std::string(words[2]);
  return true;
}

bool ReadReal(absl::string_view text, double& value) {
  return absl::SimpleAtod(text, &value) && std::isfinite(value) && value > 0 && absl::StrFormat("%.17g", value) == text;
}

bool ReadTerms(absl::string_view line, MarkedTerms& terms) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  int64_t closed = 0;
  const bool read = words.size() == 8 && words[0] == "terms" && ReadReal(words[1], terms.cap_epsilon) &&
                    ReadReal(words[2], terms.cap_delta) && ReadNumber(words[3], terms.order) && terms.order > 0 &&
                    ReadNumber(words[4], terms.cap_units) && ReadNumber(words[5], terms.max_degree) &&
                    ReadNumber(words[6], terms.node_total) && ReadNumber(words[7], closed) && closed <= 1;
  terms.closed = closed == 1;
  return read;
}

// The value of a line of exactly two words.
bool ReadWord(absl::string_view line, absl::string_view word, std::string& value) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  if (words.size() != 2 || words[0] != word || words[1].empty()) {
    return false;
  }
  value = std::string(words[1]);
  return true;
}

}  // namespace

void AddCheckpoint(Mark& mark, Checkpoint checkpoint) {
  std::vector<Checkpoint>& all = mark.checkpoints;
  all.push_back(std::move(checkpoint));
  if (all.size() <= kMaxCheckpoints) {
    return;
  }
  size_t dropped = 1;
  double smallest = 0;
  for (size_t i = 1; i + 1 < all.size(); ++i) {
    const auto gap = static_cast<double>(all[i + 1].sequence - all[i - 1].sequence);
    const double share = gap / static_cast<double>(all.back().sequence - all[i - 1].sequence);
    if (i == 1 || share < smallest) {
      smallest = share;
      dropped = i;
    }
  }
  all.erase(all.begin() + static_cast<std::ptrdiff_t>(dropped));
}

std::string FormatMark(const Mark& mark) {
  std::string text = absl::StrCat(kTitle, kVersion, "\npopulation ", mark.population, "\n");
  const MarkedTerms& terms = mark.terms;
  absl::StrAppendFormat(&text, "terms %.17g %.17g %d %d %d %d %d\n", terms.cap_epsilon, terms.cap_delta, terms.order,
                        terms.cap_units, terms.max_degree, terms.node_total, terms.closed ? 1 : 0);
  for (const Checkpoint& checkpoint : mark.checkpoints) {
    absl::StrAppend(&text, "entry ", checkpoint.sequence, " ", checkpoint.hash, " ", checkpoint.spent_units, "\n");
  }
  return absl::StrCat(text, kDigestLine, Sha256Hex(text), "\n");
}

absl::StatusOr<Mark> ParseMark(absl::string_view text) {
  std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  if (!lines.back().empty()) {
    return Unreadable("its last line has no end");
  }
  lines.pop_back();
  int64_t version = 0;
  if (lines.size() < 2 || !absl::StartsWith(lines[0], kTitle) ||
      !ReadNumber(absl::StripPrefix(lines[0], kTitle), version) || version < kVersion) {
    return Unreadable("it is cut short, or of another kind");
  }
  const absl::string_view signed_part = text.substr(0, text.size() - lines.back().size() - 1);
  if (lines.back() != absl::StrCat(kDigestLine, Sha256Hex(signed_part))) {
    return Unreadable("its content does not match its digest");
  }
  if (version > kVersion) {
    return absl::UnimplementedError(absl::StrCat("it was written by a newer version of the server (format ", version,
                                                 "; this one reads ", kVersion, "); run that version"));
  }
  if (lines.size() < kFewestLines) {
    return Unreadable("it has no entry");
  }
  Mark mark;
  if (!ReadWord(lines[1], "population", mark.population) || !ReadTerms(lines[2], mark.terms)) {
    return Unreadable("it does not say what it is of");
  }
  for (size_t i = 3; i + 1 < lines.size(); ++i) {
    Checkpoint checkpoint;
    const bool follows = ReadCheckpoint(lines[i], checkpoint) &&
                         (mark.checkpoints.empty() || (checkpoint.sequence > mark.last().sequence &&
                                                       checkpoint.spent_units >= mark.last().spent_units));
    if (!follows || mark.checkpoints.size() == kMaxCheckpoints) {
      return Unreadable("its entries do not follow each other");
    }
    mark.checkpoints.push_back(std::move(checkpoint));
  }
  return mark;
}

}  // namespace dpar
