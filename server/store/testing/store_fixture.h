// A store of either engine, and what tests of its records share.
#ifndef DPAR_SERVER_STORE_TESTING_STORE_FIXTURE_H_
#define DPAR_SERVER_STORE_TESTING_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/error.h"
#include "server/store/datasets.h"
#include "server/store/testing/temporary_store.h"

namespace dpar::testing {

inline const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

inline std::string Reason(const absl::Status& status) {
  const auto info = GetErrorInfo(status);
  return info.has_value() ? info->reason() : "";
}

class StoreTest : public ::testing::TestWithParam<Engine> {
 protected:
  absl::Status Write(const std::function<absl::Status(Transaction&)>& body) { return store_.database().Write(body); }

  void AddTenant(const std::string& id) {
    ASSERT_TRUE(Write([&](Transaction& t) { return InsertTenant(t, id, std::string("\x00\xff", 2), kNow); }).ok());
  }

  TemporaryStore store_{GetParam()};
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_STORE_TESTING_STORE_FIXTURE_H_
