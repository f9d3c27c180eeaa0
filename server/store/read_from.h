#ifndef DPAR_SERVER_STORE_READ_FROM_H_
#define DPAR_SERVER_STORE_READ_FROM_H_

#include <type_traits>

#include "absl/status/status.h"
#include "server/store/database.h"

namespace dpar {

// The result of `body`, Transaction& to absl::StatusOr, in one read transaction.
template <typename Body>
std::invoke_result_t<Body, Transaction&> ReadFrom(Database& database, const Body& body) {
  std::invoke_result_t<Body, Transaction&> result = absl::InternalError("the transaction did not run");
  const absl::Status status = database.Read([&](Transaction& transaction) {
    result = body(transaction);
    return result.status();
  });
  if (!status.ok()) {
    return status;
  }
  return result;
}

}  // namespace dpar

#endif  // DPAR_SERVER_STORE_READ_FROM_H_
