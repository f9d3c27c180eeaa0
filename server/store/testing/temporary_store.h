// A real store and data directory that vanish with the test.
#ifndef DPAR_SERVER_STORE_TESTING_TEMPORARY_STORE_H_
#define DPAR_SERVER_STORE_TESTING_TEMPORARY_STORE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/store/data_directory.h"
#include "server/store/database.h"

namespace dpar::testing {

enum class Engine { kSqlite, kPostgres };

// The engines that this machine has: always SQLite; PostgreSQL too where it is installed (said on stderr if not).
std::vector<Engine> Engines();
// For INSTANTIATE_TEST_SUITE_P: "Sqlite", "Postgres".
std::string EngineName(const ::testing::TestParamInfo<Engine>& info);

// Aborts the test program when it cannot be made. All stores of a program that are PostgreSQL's are databases of one
// private server.
class TemporaryStore {
 public:
  explicit TemporaryStore(Engine engine = Engine::kSqlite);
  ~TemporaryStore();
  TemporaryStore(const TemporaryStore&) = delete;
  TemporaryStore& operator=(const TemporaryStore&) = delete;

  [[nodiscard]] Database& database() { return *database_; }
  [[nodiscard]] const DataDirectory& directory() const { return directory_; }
  // Another handle to the same store, as another process would have.
  [[nodiscard]] std::unique_ptr<Database> OpenAgain() const;

 private:
  DataDirectory directory_;
  std::string postgres_uri_;  // empty for SQLite
  std::unique_ptr<Database> database_;
};

}  // namespace dpar::testing

#endif  // DPAR_SERVER_STORE_TESTING_TEMPORARY_STORE_H_
