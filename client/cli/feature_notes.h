#ifndef DPAR_CLIENT_CLI_FEATURE_NOTES_H_
#define DPAR_CLIENT_CLI_FEATURE_NOTES_H_

#include <string>
#include <vector>

#include "core/graph/feature_scales.h"

namespace dpar {

// What the owner of a plain graph file should know about its features before training, with the option that helps.
// Empty for features that suit the default transform.
std::vector<std::string> FeatureNotes(const FeatureScales& scales);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_FEATURE_NOTES_H_
