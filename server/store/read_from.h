// A value out of one read transaction.
#ifndef DPAR_SERVER_STORE_READ_FROM_H_
#define DPAR_SERVER_STORE_READ_FROM_H_

#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/database.h"

namespace dpar {

// What `body`, a function of Transaction& that returns absl::StatusOr, gives in a read transaction.
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
