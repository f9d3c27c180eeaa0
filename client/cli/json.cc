#include "client/cli/json.h"

#include <string>

#include "client/cli/format.h"
#include "client/cli/labels.h"
#include "client/cli/plan_json.h"
#include "core/message_json.h"

namespace dpar {

Json DatasetJson(const v1::Dataset& dataset) {
  Json json = {{"name", dataset.name()},
               {"create_time", FormatTime(dataset.create_time())},
               {"node_count", dataset.node_count()},
               {"feature_count", dataset.feature_count()},
               {"class_count", dataset.class_count()},
               {"public", dataset.is_public()},
               {"content_digest", dataset.content_digest()}};
  json["max_degree"] = dataset.has_max_degree() ? Json(dataset.max_degree()) : Json(nullptr);
  return json;
}

Json ImportReportJson(const v1::ImportReport& report) {
  return {{"edge_count", report.edge_count()},
          {"edges_symmetrised", report.edges_symmetrised()},
          {"duplicates_merged", report.duplicates_merged()},
          {"self_loops_dropped", report.self_loops_dropped()},
          {"unlabelled_nodes", report.unlabelled_nodes()},
          {"zero_features_dropped", report.zero_features_dropped()}};
}

Json JobJson(const v1::Job& job) {
  Json json = {{"name", job.name()},
               {"dataset", job.spec().dataset()},
               {"method", MethodLabel(job.plan().method())},
               {"epsilon", job.plan().epsilon()},
               {"delta", job.plan().delta()},
               {"state", StateLabel(job.state())},
               {"attempts", job.attempts()}};
  if (!job.failure().empty()) {
    json["failure"] = job.failure();
  }
  if (job.has_create_time()) {
    json["create_time"] = FormatTime(job.create_time());
  }
  if (job.has_start_time()) {
    json["start_time"] = FormatTime(job.start_time());
  }
  if (job.has_end_time()) {
    json["end_time"] = FormatTime(job.end_time());
  }
  if (job.has_evaluation()) {
    json["evaluation"] = MessageToJson(job.evaluation());
  }
  json["plan"] = PlanJson(job.plan());
  return json;
}

Json WatchEventJson(const v1::WatchJobResponse& event) {
  Json json = {{"sequence", event.sequence()}, {"state", StateLabel(event.state())},
               {"stage", event.stage()},       {"completed", event.completed()},
               {"total", event.total()},       {"epsilon_so_far", event.epsilon_so_far()}};
  if (event.has_rate()) {
    json["rate"] = event.rate();
  }
  if (event.has_eta()) {
    json["eta_seconds"] = static_cast<double>(event.eta().seconds()) + 1e-9 * event.eta().nanos();
  }
  return json;
}

Json BudgetJson(const v1::Budget& budget) {
  Json json = {{"name", budget.name()},
               {"cap_epsilon", budget.cap_epsilon()},
               {"cap_delta", budget.cap_delta()},
               {"order", budget.order()},
               {"cap_units", budget.cap_units()},
               {"posted_units", budget.posted_units()},
               {"reserved_units", budget.reserved_units()},
               {"left_units", budget.left_units()},
               {"largest_admissible_epsilon", budget.largest_admissible_epsilon()},
               {"equivalent_epsilon", budget.equivalent_epsilon()},
               {"live_events", budget.live_events()},
               {"posted_percent", budget.posted_percent()},
               {"reserved_percent", budget.reserved_percent()},
               {"frozen_reason", budget.frozen_reason()}};
  if (budget.has_max_degree()) {
    json["max_degree"] = budget.max_degree();
  }
  return json;
}

Json LedgerEntryJson(const v1::LedgerEntry& entry) {
  Json json = {{"sequence", entry.sequence()}, {"time", FormatTime(entry.time())}, {"kind", KindLabel(entry.kind())},
               {"job", entry.job()},           {"actor", entry.actor()},           {"units", entry.units()},
               {"epsilon", entry.epsilon()},   {"delta", entry.delta()},           {"reason", entry.reason()},
               {"hash", entry.hash()},         {"attempt", entry.attempt()}};
  if (entry.has_event()) {
    json["event"] = MessageToJson(entry.event());
  }
  json["stages"] = Json::array();
  for (const v1::StageCost& cost : entry.stages()) {
    json["stages"].push_back({{"stage", cost.stage()}, {"units", cost.units()}});
  }
  return json;
}

Json TenantJson(const v1::Tenant& tenant) {
  return {{"name", tenant.name()}, {"create_time", FormatTime(tenant.create_time())}};
}

Json TokenJson(const v1::Token& token) {
  Json json = {{"name", token.name()},
               {"role", RoleLabel(token.role())},
               {"purpose", token.purpose()},
               {"scopes", ScopeLabels(token.scopes())},
               {"create_time", FormatTime(token.create_time())}};
  if (token.has_expire_time()) {
    json["expire_time"] = FormatTime(token.expire_time());
  }
  if (token.has_revoke_time()) {
    json["revoke_time"] = FormatTime(token.revoke_time());
  }
  if (token.has_last_use_time()) {
    json["last_use_time"] = FormatTime(token.last_use_time());
  }
  if (!token.certificate_uri().empty()) {
    json["certificate_uri"] = token.certificate_uri();
  }
  return json;
}

Json IdentityJson(const v1::Identity& identity) {
  Json json = {{"token", identity.token()},
               {"tenant", identity.tenant()},
               {"role", RoleLabel(identity.role())},
               {"scopes", ScopeLabels(identity.scopes())}};
  if (identity.has_expire_time()) {
    json["expire_time"] = FormatTime(identity.expire_time());
  }
  return json;
}

}  // namespace dpar
