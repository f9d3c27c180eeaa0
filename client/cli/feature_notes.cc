#include "client/cli/feature_notes.h"

#include "absl/strings/str_cat.h"
#include "client/cli/format.h"

namespace dpar {
namespace {

constexpr float kWideRatio = 100;

}  // namespace

std::vector<std::string> FeatureNotes(const FeatureScales& scales) {
  std::vector<std::string> notes;
  if (scales.negative_columns > 0) {
    notes.push_back(absl::StrCat(FormatCount(scales.negative_columns), " of ", FormatCount(scales.columns),
                                 " feature columns have negative values. The default transform takes square roots and\n"
                                 "keeps signs; for embeddings, dpar train --transform unit keeps their directions."));
  }
  if (scales.largest > kWideRatio * scales.smallest) {
    notes.push_back(absl::StrCat("the largest values of feature columns go from ", scales.smallest, " to ",
                                 scales.largest,
                                 ": a few columns drown the others. Divide each column by a\nconstant that is public "
                                 "knowledge, or upload tables with --schema, which does it for you."));
  }
  return notes;
}

}  // namespace dpar
