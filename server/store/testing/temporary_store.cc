#include "server/store/testing/temporary_store.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <utility>

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

}  // namespace

TemporaryStore::TemporaryStore() : directory_(MakeDirectory()) {
  absl::StatusOr<std::unique_ptr<Database>> opened = OpenSqlite(directory_.Database());
  absl::Status status = opened.status();
  if (status.ok()) {
    database_ = std::move(*opened);
    status = Migrate(*database_);
  }
  if (!status.ok()) {
    std::cerr << "cannot make a store: " << status << "\n";
    std::abort();
  }
}

TemporaryStore::~TemporaryStore() {
  database_.reset();
  std::filesystem::remove_all(directory_.root());
}

}  // namespace dpar::testing
