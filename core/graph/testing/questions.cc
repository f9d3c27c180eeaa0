#include "core/graph/testing/questions.h"

#include <gtest/gtest.h>

#include <atomic>

namespace dpar::testing {

int64_t CancelAtEveryQuestion(const std::function<absl::Status(const std::function<bool()>& keep_going)>& work) {
  std::atomic<int64_t> questions = 0;
  const absl::Status whole = work([&] { return ++questions > 0; });
  EXPECT_TRUE(whole.ok()) << whole;
  for (int64_t stop_at = 1; stop_at <= questions; ++stop_at) {
    std::atomic<int64_t> asked = 0;
    const absl::Status status = work([&] { return ++asked != stop_at; });
    EXPECT_TRUE(absl::IsCancelled(status)) << "question " << stop_at << " of " << questions << ": " << status;
  }
  return questions;
}

}  // namespace dpar::testing
