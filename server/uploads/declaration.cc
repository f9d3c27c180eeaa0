#include "server/uploads/declaration.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/error.h"
#include "core/graph/size_bounds.h"
#include "core/privacy/budget.h"
#include "core/status_macros.h"
#include "core/table/schema.h"
#include "core/validate.h"
#include "server/resource_name.h"
#include "server/store/message_text.h"
#include "server/uploads/upload_writer.h"

namespace dpar {
namespace {

absl::Status CheckSize(absl::string_view field, int64_t value, int64_t low, absl::string_view limit, int64_t maximum) {
  if (value > maximum) {
    return LimitExceeded(limit, maximum);
  }
  return ValidateRange(field, value, low, maximum);
}

absl::Status CapAboveDefault(absl::string_view what, double asked, double most) {
  return MakeError(
      absl::StatusCode::kFailedPrecondition, v1::CAP_ABOVE_DEFAULT,
      absl::StrCat("the cap's ", what, " of ", asked, " is above ", most,
                   ", the most that an owner may declare on this server. Declare less, or ask an operator "
                   "to raise the cap after the upload"),
      {{absl::StrCat("asked_", what), absl::StrCat(asked)}, {absl::StrCat("max_", what), absl::StrCat(most)}});
}

absl::Status CheckPopulation(const v1::OpenUploadRequest& request) {
  if (request.population().empty()) {
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const ResourceName name, ParsePopulationName("population", request.population()));
  if (name.tenant != request.parent()) {
    return ResourceNotFound(name.name);
  }
  if (request.is_public()) {
    return InvalidField("population", "population must be empty for public data, which has no budget");
  }
  if (request.has_cap_epsilon() || request.has_cap_delta()) {
    return InvalidField(request.has_cap_epsilon() ? "cap_epsilon" : "cap_delta",
                        "the cap must be unset with a population, which has its own; an operator changes it");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateDeclaration(const v1::OpenUploadRequest& request, const Limits& limits) {
  DPAR_RETURN_IF_ERROR(ValidateRequestId(request.request_id()));
  if (!request.dataset_id().empty()) {
    DPAR_RETURN_IF_ERROR(ValidateId("dataset_id", request.dataset_id()));
  }
  DPAR_RETURN_IF_ERROR(CheckSize("size_bytes", request.size_bytes(), 1, "max_upload_bytes", limits.max_upload_bytes));
  DPAR_RETURN_IF_ERROR(CheckSize("node_count", request.node_count(), 1, "max_nodes", limits.max_nodes));
  DPAR_RETURN_IF_ERROR(CheckSize("feature_count", request.feature_count(), 1, "max_features", limits.max_features));
  DPAR_RETURN_IF_ERROR(CheckSize("class_count", request.class_count(), 2, "max_classes", limits.max_classes));
  if (request.has_max_degree()) {
    DPAR_RETURN_IF_ERROR(ValidateRange("max_degree", request.max_degree(), 1, request.node_count()));
  }
  if (!request.schema().empty()) {
    DPAR_RETURN_IF_ERROR(CheckDeclaredSchema(request.schema(), request.feature_count(), request.class_count()));
  }
  if (request.has_edge_bound()) {
    DPAR_RETURN_IF_ERROR(CheckSize("edge_bound", request.edge_bound(), 1, "max_edges", limits.max_edges));
  }
  if (request.has_entry_bound()) {
    DPAR_RETURN_IF_ERROR(
        CheckSize("entry_bound", request.entry_bound(), 1, "max_feature_entries", limits.max_feature_entries));
  }
  DPAR_RETURN_IF_ERROR(CheckPopulation(request));
  if (!v1::OpenUploadRequest::Format_IsValid(request.format())) {
    return InvalidField("format", "format must be NPZ or unset");
  }
  return absl::OkStatus();
}

absl::Status SettleCap(v1::OpenUploadRequest& declared, double default_epsilon) {
  if (declared.is_public() || !declared.population().empty()) {
    declared.clear_cap_epsilon();
    declared.clear_cap_delta();
    return absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const double default_delta, DefaultDelta(declared.node_count()));
  const double epsilon = declared.has_cap_epsilon() ? declared.cap_epsilon() : default_epsilon;
  const double delta = declared.has_cap_delta() ? declared.cap_delta() : default_delta;
  DPAR_RETURN_IF_ERROR(ValidatePositive("cap_epsilon", epsilon));
  DPAR_RETURN_IF_ERROR(ValidateProbability("cap_delta", delta));
  if (epsilon > default_epsilon) {
    return CapAboveDefault("epsilon", epsilon, default_epsilon);
  }
  if (delta > default_delta) {
    return CapAboveDefault("delta", delta, default_delta);
  }
  DPAR_RETURN_IF_ERROR(MakeBudgetTerms(epsilon, delta).status());
  declared.set_cap_epsilon(epsilon);
  declared.set_cap_delta(delta);
  return absl::OkStatus();
}

void SettleBounds(v1::OpenUploadRequest& declared, const Limits& limits) {
  const SizeBounds bounds = DefaultSizeBounds({declared.node_count(), declared.feature_count(), declared.class_count()},
                                              {limits.max_edges, limits.max_feature_entries});
  if (!declared.has_edge_bound()) {
    declared.set_edge_bound(bounds.edges);
  }
  if (!declared.has_entry_bound()) {
    declared.set_entry_bound(bounds.feature_entries);
  }
}

}  // namespace dpar
