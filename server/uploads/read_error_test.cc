// A disk that fails while an uploaded file is read: worth a retry, and no reason to refuse the file.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/uploads/testing/uploads_fixture.h"

namespace {

// The read that fails, counted from 1; 0 is none.
int bad_read = 0;
int reads = 0;

}  // namespace

// Stands before the C library's, for libzip too, through which every uploaded file is read.
extern "C" size_t fread(void* out, size_t size, size_t count, FILE* file) {
  static const auto real = reinterpret_cast<size_t (*)(void*, size_t, size_t, FILE*)>(dlsym(RTLD_NEXT, "fread"));
  if (bad_read > 0 && ++reads == bad_read) {
    constexpr int kErrorSeen = 0x20;  // what ferror asks for
    file->_flags |= kErrorSeen;
    errno = EIO;
    return 0;
  }
  return real(out, size, count, file);
}

namespace dpar {
namespace {

using testing::ExpectError;

class ReadErrorTest : public testing::UploadsTest {};

TEST_P(ReadErrorTest, AFileThatCouldNotBeReadIsTakenTheNextTime) {
  int failed = 0;
  for (int turn = 1;; ++turn) {
    const absl::StatusOr<v1::Upload> upload = Open(Declaration(absl::StrCat("d", turn), absl::StrCat("open", turn)));
    ASSERT_TRUE(upload.ok()) << upload.status();
    ASSERT_TRUE(Write(upload->name(), 0, bytes_).ok());
    const auto finish = [&] { return Finish(upload->name(), Sha256Hex(bytes_), absl::StrCat("finish", turn)); };
    reads = 0;
    bad_read = turn;
    const absl::StatusOr<v1::FinishUploadResponse> first = finish();
    bad_read = 0;
    if (first.ok() && reads < turn) {
      break;  // there were fewer reads
    }
    ++failed;
    if (first.ok()) {
      continue;  // the second look found the file whole
    }
    ExpectError(first.status(), absl::StatusCode::kUnavailable, "SERVER_UNAVAILABLE");
    const absl::StatusOr<v1::FinishUploadResponse> second = finish();
    EXPECT_TRUE(second.ok()) << "after a failure of read " << turn << ": " << second.status();
  }
  EXPECT_GT(failed, 5);
}

INSTANTIATE_TEST_SUITE_P(Engines, ReadErrorTest, ::testing::ValuesIn(testing::Engines()), testing::EngineName);

}  // namespace
}  // namespace dpar
