#include "core/certificate/training_graph.h"

#include <cstddef>
#include <span>
#include <string>

#include "core/certificate/digest.h"
#include "core/graph/canonical_content.h"
#include "core/stage.h"
#include "core/status_macros.h"

namespace dpar {

absl::StatusOr<bool> IsGraphOfDigest(const GraphView& graph, absl::string_view key, absl::string_view digest) {
  DPAR_ASSIGN_OR_RETURN(const std::string raw_key, HexDecode(key));
  HmacSha256Stream hmac(raw_key);
  DPAR_RETURN_IF_ERROR(VisitCanonicalContent(
      graph, [&hmac](std::span<const std::byte> piece) { hmac.Add(piece); }, AlwaysGoOn));
  return hmac.Hex() == digest;
}

}  // namespace dpar
