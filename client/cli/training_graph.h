// Whether a graph is the one that a model was trained on.
#ifndef DPAR_CLIENT_CLI_TRAINING_GRAPH_H_
#define DPAR_CLIENT_CLI_TRAINING_GRAPH_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph.h"

namespace dpar {

// dataset.digest of a certificate, lower-case hex. The signature is not looked at: who would forge the digest could
// only turn the warning off that it is for. INVALID_ARGUMENT when there is none.
absl::StatusOr<std::string> DatasetDigest(absl::string_view envelope);

// Whether the keyed digest of the graph's canonical content is `digest`. `key` is in hex; INVALID_ARGUMENT when it is
// not.
absl::StatusOr<bool> IsGraphOfDigest(const GraphView& graph, absl::string_view key, absl::string_view digest);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_TRAINING_GRAPH_H_
