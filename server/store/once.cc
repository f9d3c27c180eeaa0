#include "server/store/once.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/certificate/digest.h"
#include "core/error.h"
#include "core/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "server/store/datasets.h"

namespace dpar {
namespace {

std::string Serialise(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream output(&stream);
  output.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&output);
  output.Trim();
  return bytes;
}

}  // namespace

RequestKey MakeRequestKey(absl::string_view parent, absl::string_view method, absl::string_view request_id,
                          const google::protobuf::Message& request) {
  return {absl::StrCat(parent, ":", method), std::string(request_id), Sha256Hex(Serialise(request))};
}

absl::StatusOr<bool> Recall(Transaction& transaction, const RequestKey& key, google::protobuf::Message& answer) {
  DPAR_ASSIGN_OR_RETURN(const std::optional<std::string> stored,
                        FindAnswer(transaction, key.scope, key.request_id, key.fingerprint));
  if (!stored.has_value()) {
    return false;
  }
  if (!answer.ParseFromString(*stored)) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT, "a remembered answer cannot be read",
                     {{"resource", key.scope}});
  }
  return true;
}

absl::Status Remember(Transaction& transaction, const RequestKey& key, const google::protobuf::Message& answer,
                      absl::Time now) {
  DPAR_ASSIGN_OR_RETURN(const bool claimed, ClaimAnswer(transaction, key.scope, key.request_id, key.fingerprint, now));
  if (!claimed) {
    return MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                     "the same request was carried out meanwhile; ask again for its answer");
  }
  return StoreAnswer(transaction, key.scope, key.request_id, Serialise(answer));
}

absl::Status Once(Database& database, const RequestKey& key, absl::Time now, google::protobuf::Message& answer,
                  const std::function<absl::Status(Transaction&)>& body) {
  return database.Write([&](Transaction& transaction) -> absl::Status {
    answer.Clear();
    // Claims the id before anything is done; a concurrent second request waits here for the first.
    DPAR_ASSIGN_OR_RETURN(const bool claimed,
                          ClaimAnswer(transaction, key.scope, key.request_id, key.fingerprint, now));
    if (!claimed) {
      DPAR_ASSIGN_OR_RETURN(const bool recalled, Recall(transaction, key, answer));
      return recalled ? absl::OkStatus()
                      : MakeError(absl::StatusCode::kUnavailable, v1::SERVER_UNAVAILABLE,
                                  "the answer to this request was forgotten this moment; send it again");
    }
    DPAR_RETURN_IF_ERROR(body(transaction));
    return StoreAnswer(transaction, key.scope, key.request_id, Serialise(answer));
  });
}

}  // namespace dpar
