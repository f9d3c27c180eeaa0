#include "server/store/testing/temporary_store.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

#include "server/store/testing/private_postgres.h"

namespace dpar::testing {
namespace {

std::string MakeDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "dpar_store.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    std::cerr << "cannot make a temporary directory\n";
    std::abort();
  }
  return pattern;
}

// Started by the first test that asks for it, stopped when the program ends.
PrivatePostgres* SharedPostgres() {
  static const std::unique_ptr<PrivatePostgres> server = PrivatePostgres::Start();
  return server.get();
}

}  // namespace

std::vector<Engine> Engines() {
  if (SharedPostgres() == nullptr) {
    std::cerr << "PostgreSQL is not installed: its tests are left out\n";
    return {Engine::kSqlite};
  }
  return {Engine::kSqlite, Engine::kPostgres};
}

std::string EngineName(const ::testing::TestParamInfo<Engine>& info) {
  return info.param == Engine::kSqlite ? "Sqlite" : "Postgres";
}

TemporaryStore::TemporaryStore(Engine engine)
    : directory_(MakeDirectory()), postgres_uri_(engine == Engine::kPostgres ? SharedPostgres()->NewDatabase() : "") {
  database_ = OpenAgain();
  if (const absl::Status status = Migrate(*database_); !status.ok()) {
    std::cerr << "cannot make a store: " << status << "\n";
    std::abort();
  }
}

TemporaryStore::~TemporaryStore() {
  database_.reset();
  std::filesystem::remove_all(directory_.root());
}

std::unique_ptr<Database> TemporaryStore::OpenAgain() const {
  absl::StatusOr<std::unique_ptr<Database>> opened =
      postgres_uri_.empty() ? OpenSqlite(directory_.Database()) : OpenPostgres(postgres_uri_);
  if (!opened.ok()) {
    std::cerr << "cannot open a store: " << opened.status() << "\n";
    std::abort();
  }
  return *std::move(opened);
}

}  // namespace dpar::testing
