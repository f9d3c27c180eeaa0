#include "core/graph/testing/npz_fixture.h"

#include <unistd.h>
#include <zip.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <system_error>
#include <variant>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "gtest/gtest.h"

namespace dpar::testing {
namespace {

void Require(bool condition, const std::string& what) {
  if (!condition) {
    std::cerr << "test fixture: " << what << "\n";
    std::abort();
  }
}

// A directory of this process alone, removed when it ends.
class ProcessDirectory {
 public:
  ProcessDirectory() : path_(absl::StrCat(::testing::TempDir(), "dpar-test-", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ProcessDirectory(const ProcessDirectory&) = delete;
  ProcessDirectory& operator=(const ProcessDirectory&) = delete;
  ~ProcessDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

std::string TestPath(const std::string& name) {
  static const ProcessDirectory directory;
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return absl::StrCat(directory.path(), "/", test->test_suite_name(), "-", test->name(), "-", name);
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Require(file.good(), "cannot read " + path);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::remove(path.c_str());  // truncating in place makes ext4 flush, which slows thousands of damaged files down
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  Require(file.good(), "cannot write " + path);
}

void WriteRawZip(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries) {
  zip_t* archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
  Require(archive != nullptr, "cannot start " + path);
  for (const auto& [name, bytes] : entries) {
    zip_source_t* source = zip_source_buffer(archive, bytes.data(), bytes.size(), 0);
    Require(zip_file_add(archive, name.c_str(), source, 0) >= 0, "cannot add " + name);
  }
  Require(zip_close(archive) == 0, "cannot finish " + path);
}

std::string RawNpy(const std::string& dictionary, const std::string& payload) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(dictionary.size() & 0xff);
  file += static_cast<char>(dictionary.size() >> 8);
  return file + dictionary + payload;
}

std::string RawNpyOf(const std::string& descr, const std::string& shape, const std::string& payload) {
  return RawNpy(absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': ", shape, ", }\n"), payload);
}

absl::Status WriteArrays(const std::string& path, const std::map<std::string, NpyArray>& arrays) {
  std::map<std::string, NpyView> views;
  for (const auto& [name, array] : arrays) {
    NpyView& view = views[name];
    view.shape = array.shape;
    std::visit([&view](const auto& entries) { view.data = entries; }, array.data);
  }
  return WriteNpzFile(path, views);
}

std::string Summary(const absl::Status& status) {
  std::string summary = absl::StatusCodeToString(status.code());
  if (const auto info = GetErrorInfo(status); info.has_value()) {
    absl::StrAppend(&summary, " ", info->reason());
    const std::map<std::string, std::string> metadata(info->metadata().begin(), info->metadata().end());
    for (const auto& [key, value] : metadata) {
      absl::StrAppend(&summary, " ", key, "=", value);
    }
  }
  return summary;
}

}  // namespace dpar::testing
