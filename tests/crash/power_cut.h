// Power that goes while a server works: what it had not synced may be lost, in whole or in part.
#ifndef DPAR_TESTS_CRASH_POWER_CUT_H_
#define DPAR_TESTS_CRASH_POWER_CUT_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "core/random/random.h"
#include "tests/end_to_end/process.h"

namespace dpar::crash {

// For the files of one server: its data directory and its witness directory beside it.
class PowerCut {
 public:
  explicit PowerCut(std::string data_directory) : data_directory_(std::move(data_directory)) {}

  // What the server is started with. It is killed at its sync number `cut` (0: never), and one in `faults` of its syncs
  // and writes fails (0: none).
  [[nodiscard]] e2e::Environment EnvironmentFor(int64_t cut, int64_t faults, uint64_t seed) const;

  // Once the server is dead: leaves what the disk would have. Each directory is as it was at its last sync or as it was
  // in the end, and so is each page of a file; `strict`, all are as at their last sync.
  void Apply(RandomSource& random, bool strict);

  // How many syncs the server did, if it was not killed at one.
  [[nodiscard]] int64_t Syncs() const;
  // What is there now is on the disk.
  void AdoptAll() const;

  // What Apply took away so far.
  [[nodiscard]] int64_t lost_entries() const { return lost_entries_; }
  [[nodiscard]] int64_t lost_pages() const { return lost_pages_; }

 private:
  // Maps everything that the dead server left by key.
  void Map(const std::filesystem::path& path);
  void RebuildDirectory(const std::string& key, const std::filesystem::path& target, RandomSource& random, bool strict);
  void RebuildFile(const std::string& key, const std::filesystem::path& target, RandomSource& random, bool strict);
  // What was rebuilt is on the disk.
  void Adopt(const std::filesystem::path& path) const;
  [[nodiscard]] std::string Kept(const std::string& key) const { return e2e::ReadFile(shadow_.File(key)); }

  const std::string data_directory_;
  const e2e::TemporaryDirectory shadow_;
  std::map<std::string, std::filesystem::path> left_;
  int64_t lost_entries_ = 0;
  int64_t lost_pages_ = 0;
};

}  // namespace dpar::crash

#endif  // DPAR_TESTS_CRASH_POWER_CUT_H_
