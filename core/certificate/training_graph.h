// Whether a graph is the one that a certificate is about.
#ifndef DPAR_CORE_CERTIFICATE_TRAINING_GRAPH_H_
#define DPAR_CORE_CERTIFICATE_TRAINING_GRAPH_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/graph/graph.h"

namespace dpar {

// Whether the keyed digest of the graph's canonical content is `digest`. INVALID_ARGUMENT unless `key` is hex.
absl::StatusOr<bool> IsGraphOfDigest(const GraphView& graph, absl::string_view key, absl::string_view digest);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_TRAINING_GRAPH_H_
