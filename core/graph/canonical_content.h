// The content of a graph as bytes that a keyed digest is taken of.
#ifndef DPAR_CORE_GRAPH_CANONICAL_CONTENT_H_
#define DPAR_CORE_GRAPH_CANONICAL_CONTENT_H_

#include <cstddef>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "core/stage.h"

namespace dpar {

// Calls `visit` with the bytes of CanonicalContent (core/graph/graph.h), in order and at most a mebibyte at a time,
// without a copy of them. CANCELLED once `report` says no.
absl::Status VisitCanonicalContent(const GraphView& graph,
                                   const std::function<void(std::span<const std::byte> piece)>& visit,
                                   const StageReport& report);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CANONICAL_CONTENT_H_
