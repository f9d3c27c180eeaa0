// A real SQLite store and data directory that vanish with the test.
#ifndef DPAR_SERVER_STORE_TESTING_TEMPORARY_STORE_H_
#define DPAR_SERVER_STORE_TESTING_TEMPORARY_STORE_H_

#include <memory>
#include <string>

#include "server/store/data_directory.h"
#include "server/store/database.h"

namespace dpar::testing {

// Aborts the test program when it cannot be made.
class TemporaryStore {
 public:
  TemporaryStore();
  ~TemporaryStore();
  TemporaryStore(const TemporaryStore&) = delete;
  TemporaryStore& operator=(const TemporaryStore&) = delete;

  [[nodiscard]] Database& database() { return *database_; }
  [[nodiscard]] const DataDirectory& directory() const { return directory_; }

 private:
  DataDirectory directory_;
  std::unique_ptr<Database> database_;
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_STORE_TESTING_TEMPORARY_STORE_H_
