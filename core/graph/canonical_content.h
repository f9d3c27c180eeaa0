#ifndef DPAR_CORE_GRAPH_CANONICAL_CONTENT_H_
#define DPAR_CORE_GRAPH_CANONICAL_CONTENT_H_

#include <cstddef>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "core/graph/graph.h"
#include "core/stage.h"

namespace dpar {

// Visits the bytes of CanonicalContent (graph.h) in order, up to 1 MiB at once. CANCELLED once `report` says no.
absl::Status VisitCanonicalContent(const GraphView& graph,
                                   const std::function<void(std::span<const std::byte> piece)>& visit,
                                   const StageReport& report);

}  // namespace dpar

#endif  // DPAR_CORE_GRAPH_CANONICAL_CONTENT_H_
