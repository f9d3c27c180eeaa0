#include "core/certificate/training_graph.h"

#include <cstddef>
#include <span>

#include "core/certificate/digest.h"
#include "core/graph/canonical_content.h"
#include "core/stage.h"
#include "core/status_macros.h"
#include "nlohmann/json.hpp"

namespace dpar {

absl::StatusOr<std::string> DatasetDigest(absl::string_view envelope) {
  const auto no_certificate = [] { return absl::InvalidArgumentError("the file is not a certificate"); };
  const auto outer = nlohmann::json::parse(envelope, nullptr, /*allow_exceptions=*/false);
  if (!outer.is_object() || !outer.contains("payload") || !outer["payload"].is_string()) {
    return no_certificate();
  }
  DPAR_ASSIGN_OR_RETURN(const std::string payload, Base64Decode(outer["payload"].get<std::string>()));
  const auto statement = nlohmann::json::parse(payload, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json::json_pointer place("/predicate/dataset/digest");
  if (!statement.is_object() || !statement.contains(place) || !statement[place].is_string()) {
    return no_certificate();
  }
  return statement[place].get<std::string>();
}

absl::StatusOr<bool> IsGraphOfDigest(const GraphView& graph, absl::string_view key, absl::string_view digest) {
  DPAR_ASSIGN_OR_RETURN(const std::string raw_key, HexDecode(key));
  HmacSha256Stream hmac(raw_key);
  DPAR_RETURN_IF_ERROR(VisitCanonicalContent(
      graph, [&hmac](std::span<const std::byte> piece) { hmac.Add(piece); }, AlwaysGoOn));
  return hmac.Hex() == digest;
}

}  // namespace dpar
