#include "server/services/server_service.h"

#include <spdlog/spdlog.h>

#include "core/error.h"
#include "server/store/message_text.h"

namespace dpar {
namespace {

v1::SigningKey ToProto(const KnownKey& known) {
  const auto timestamp = [](absl::Time time) { return ToTimestamp(absl::ToUnixMicros(time)); };
  v1::SigningKey proto;
  proto.set_key_id(known.key.key_id());
  proto.set_public_key_pem(known.key.pem());
  if (known.create_time.has_value()) {
    *proto.mutable_create_time() = timestamp(*known.create_time);
  }
  if (known.retire_time.has_value()) {
    *proto.mutable_retire_time() = timestamp(*known.retire_time);
  }
  if (known.revoke_time.has_value()) {
    *proto.mutable_revoke_time() = timestamp(*known.revoke_time);
    proto.set_revoke_reason(known.revoke_reason);
  }
  return proto;
}

}  // namespace

v1::Limits ToProto(const Limits& limits) {
  v1::Limits proto;
  proto.set_max_upload_bytes(limits.max_upload_bytes);
  proto.set_max_chunk_bytes(limits.max_chunk_bytes);
  proto.set_max_nodes(limits.max_nodes);
  proto.set_max_features(limits.max_features);
  proto.set_max_classes(limits.max_classes);
  proto.set_max_edges(limits.max_edges);
  proto.set_max_feature_entries(limits.max_feature_entries);
  proto.set_max_datasets(limits.max_datasets);
  proto.set_max_open_uploads(limits.max_open_uploads);
  proto.set_max_queued_jobs(limits.max_queued_jobs);
  proto.set_max_streams(limits.max_streams);
  proto.set_default_cap_epsilon(limits.default_cap_epsilon);
  proto.set_max_attempts(static_cast<int32_t>(limits.max_attempts));
  proto.set_max_running_jobs(limits.max_running_jobs);
  proto.set_max_job_bytes(limits.max_job_bytes);
  proto.set_max_watches(limits.max_watches);
  proto.set_max_tokens(limits.max_tokens);
  proto.set_max_tenants(limits.max_tenants);
  proto.set_max_idle_seconds(limits.max_idle_seconds);
  proto.set_request_memory_days(limits.request_memory_days);
  proto.set_upload_life_days(limits.upload_life_days);
  proto.set_max_message_bytes(limits.max_chunk_bytes + kMessageOverheadBytes);
  return proto;
}

grpc::Status ServerServiceImpl::GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* /*request*/,
                                              v1::ServerInfo* response) {
  return parts_.gate.Admit(*context, "ServerService/GetServerInfo", [&](const Identity&) {
    *response = info_;
    return absl::OkStatus();
  });
}

grpc::Status ServerServiceImpl::WhoAmI(grpc::ServerContext* context, const v1::WhoAmIRequest* /*request*/,
                                       v1::Identity* response) {
  return parts_.gate.Admit(*context, "ServerService/WhoAmI",
                           [&](const Identity& caller) { return Answer(caller, {}, *response); });
}

absl::Status ServerServiceImpl::Answer(const Identity& caller, const v1::WhoAmIRequest& /*request*/,
                                       v1::Identity& response) const {
  response.set_tenant(caller.tenant);
  response.set_role(caller.role);
  response.set_token(caller.token);
  for (const v1::Scope scope : caller.scopes) {
    response.add_scopes(scope);
  }
  if (caller.expire_time.has_value()) {
    *response.mutable_expire_time() = *caller.expire_time;
  }
  return absl::OkStatus();
}

grpc::Status ServerServiceImpl::ListSigningKeys(grpc::ServerContext* context,
                                                const v1::ListSigningKeysRequest* /*request*/,
                                                v1::ListSigningKeysResponse* response) {
  return parts_.gate.Admit(*context, "ServerService/ListSigningKeys", [&](const Identity&) -> absl::Status {
    const absl::StatusOr<std::vector<KnownKey>> keys = signing_keys_.List();
    if (!keys.ok()) {
      spdlog::error("the signing keys cannot be listed: {}", std::string(keys.status().message()));
      return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE, "the signing keys cannot be read now");
    }
    for (const KnownKey& known : *keys) {
      *response->add_keys() = ToProto(known);
    }
    return absl::OkStatus();
  });
}

}  // namespace dpar
