#include "core/graph/canonical_content.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace dpar {
namespace {

static_assert(std::endian::native == std::endian::little, "canonical content is little-endian memory");

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr char kFormat[] = "dpar.graph.v1";

using Bytes = std::span<const std::byte>;

}  // namespace

absl::Status VisitCanonicalContent(const GraphView& graph, const std::function<void(Bytes piece)>& visit,
                                   const StageReport& report) {
  const std::array<int64_t, 2> sizes = {graph.sizes.node_count, graph.sizes.feature_count};
  const std::array<Bytes, 8> sections = {std::as_bytes(std::span(kFormat, sizeof(kFormat) - 1)),
                                         std::as_bytes(std::span(sizes)),
                                         std::as_bytes(graph.edges.offsets),
                                         std::as_bytes(graph.edges.neighbours),
                                         std::as_bytes(graph.features.offsets),
                                         std::as_bytes(graph.features.columns),
                                         std::as_bytes(graph.features.values),
                                         std::as_bytes(graph.labels)};
  double total = 0;
  for (const Bytes section : sections) {
    total += static_cast<double>(section.size());
  }
  double done = 0;
  for (Bytes section : sections) {
    const uint64_t length = section.size();
    visit(std::as_bytes(std::span(&length, 1)));
    while (!section.empty()) {
      const Bytes piece = section.first(std::min(kPieceBytes, section.size()));
      visit(piece);
      section = section.subspan(piece.size());
      done += static_cast<double>(piece.size());
      if (!report(done / total)) {
        return absl::CancelledError("going through the content was stopped");
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace dpar
