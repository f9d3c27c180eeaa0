// A request that is sent twice is carried out once.
#ifndef DPAR_SERVER_STORE_ONCE_H_
#define DPAR_SERVER_STORE_ONCE_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "server/store/database.h"

namespace dpar {

struct RequestKey {
  std::string scope;  // "{tenants/t or operator}:{Method}"
  std::string request_id;
  std::string fingerprint;
};
RequestKey MakeRequestKey(absl::string_view parent, absl::string_view method, absl::string_view request_id,
                          const google::protobuf::Message& request);

// Fills `answer` with the remembered answer; true if there was one. ALREADY_EXISTS / REQUEST_ID_REUSED for a reused id.
absl::StatusOr<bool> Recall(Transaction& transaction, const RequestKey& key, google::protobuf::Message& answer);
absl::Status Remember(Transaction& transaction, const RequestKey& key, const google::protobuf::Message& answer,
                      absl::Time now);

// Recalls the answer, or runs `body` and stores its effects and answer in one transaction.
absl::Status Once(Database& database, const RequestKey& key, absl::Time now, google::protobuf::Message& answer,
                  const std::function<absl::Status(Transaction&)>& body);

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_ONCE_H_
