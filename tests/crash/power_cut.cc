#include "tests/crash/power_cut.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/crash/file_key.h"

namespace dpar::crash {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPageBytes = 4096;

std::string KeyAt(const fs::path& path) { return KeyOf(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW); }

using Entries = std::map<std::string, std::string>;  // name to key

Entries ListOf(const fs::path& directory) {
  Entries entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    entries[entry.path().filename()] = KeyAt(entry.path());
  }
  return entries;
}

Entries ListIn(const std::string& text) {
  Entries entries;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(' ', 1));
    entries[parts.second] = parts.first;
  }
  return entries;
}

}  // namespace

e2e::Environment PowerCut::EnvironmentFor(int64_t cut, int64_t faults, uint64_t seed) const {
  return {{"LD_PRELOAD", e2e::BinaryPath("../lib/libfile_layer.so")},
          {"DPAR_TEST_LAYER_ROOT", data_directory_},
          {"DPAR_TEST_LAYER_SHADOW", shadow_.path()},
          {"DPAR_TEST_LAYER_CUT", absl::StrCat(cut)},
          {"DPAR_TEST_LAYER_FAULTS", absl::StrCat(faults)},
          {"DPAR_TEST_LAYER_SEED", absl::StrCat(seed)}};
}

void PowerCut::Apply(RandomSource& random, bool strict) {
  for (const std::string& top : {data_directory_, data_directory_ + ".witness"}) {
    if (!fs::exists(top)) {
      continue;
    }
    const fs::path dead = top + ".dead";
    fs::rename(top, dead);
    left_.clear();
    Map(dead);
    RebuildDirectory(KeyAt(dead), top, random, strict);
    fs::remove_all(dead);
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(shadow_.path())) {
    fs::remove(entry);
  }
  AdoptAll();
}

int64_t PowerCut::Syncs() const {
  int64_t syncs = 0;
  return absl::SimpleAtoi(e2e::ReadFile(shadow_.File("syncs")), &syncs) ? syncs : 0;
}

void PowerCut::AdoptAll() const {
  for (const std::string& top : {data_directory_, data_directory_ + ".witness"}) {
    if (fs::exists(top)) {
      Adopt(top);
    }
  }
}

void PowerCut::Map(const fs::path& path) {
  left_[KeyAt(path)] = path;
  if (fs::is_directory(path)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
      Map(entry);
    }
  }
}

void PowerCut::RebuildDirectory(const std::string& key, const fs::path& target, RandomSource& random, bool strict) {
  fs::create_directory(target);
  fs::permissions(target, fs::perms::owner_all);
  const Entries synced = ListIn(Kept(key));
  const auto found = left_.find(key);
  const Entries last = found == left_.end() ? synced : ListOf(found->second);
  const bool as_synced = strict || UniformBelow(random, 2) == 0;
  if (as_synced && synced != last) {
    ++lost_entries_;
  }
  for (const auto& [name, child] : as_synced ? synced : last) {
    if (child.starts_with("d")) {
      RebuildDirectory(child, target / name, random, strict);
    } else {
      RebuildFile(child, target / name, random, strict);
    }
  }
}

void PowerCut::RebuildFile(const std::string& key, const fs::path& target, RandomSource& random, bool strict) {
  std::string bytes = Kept(key);
  const auto found = left_.find(key);
  const std::string last = found == left_.end() ? bytes : e2e::ReadFile(found->second);
  if (bytes != last && strict) {
    ++lost_pages_;
  }
  if (bytes != last && !strict) {
    const size_t size = UniformBelow(random, 2) == 0 ? bytes.size() : last.size();
    bytes.resize(size, '\0');
    for (size_t at = 0; at < size; at += kPageBytes) {
      if (at < last.size() && UniformBelow(random, 2) == 0) {
        bytes.replace(at, std::min(kPageBytes, size - at), last.substr(at, std::min(kPageBytes, size - at)));
        bytes.resize(size, '\0');
      } else {
        ++lost_pages_;
      }
    }
  }
  e2e::WriteFile(target, bytes);
  fs::permissions(target, found == left_.end() ? fs::perms::owner_read | fs::perms::owner_write
                                               : fs::status(found->second).permissions());
}

void PowerCut::Adopt(const fs::path& path) const {
  const std::string shadow = shadow_.File(KeyAt(path));
  if (!fs::is_directory(path)) {
    fs::copy_file(path, shadow);
    return;
  }
  std::string list;
  for (const auto& [name, key] : ListOf(path)) {
    absl::StrAppend(&list, key, " ", name, "\n");
    Adopt(path / name);
  }
  e2e::WriteFile(shadow, list);
}

}  // namespace dpar::crash
