#include "tests/lab/row_progress.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/time/clock.h"

namespace dpar::lab {
namespace {

constexpr absl::Duration kFirstDraw = absl::Seconds(1);
constexpr absl::Duration kRedrawPeriod = absl::Milliseconds(100);
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

RowProgress::RowProgress(int64_t row_count)
    : row_count_(row_count), is_terminal_(::isatty(STDERR_FILENO) == 1), next_draw_(absl::Now() + kFirstDraw) {}

RowProgress::~RowProgress() {
  if (on_screen_) {
    std::cerr << kClearLine << std::flush;
  }
}

void RowProgress::Update(int64_t rows_done) {
  if (!is_terminal_) {
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  most_rows_done_ = std::max(most_rows_done_, rows_done);
  const absl::Time now = absl::Now();
  if (now < next_draw_) {
    return;
  }
  std::cerr << kClearLine << "rows " << most_rows_done_ << " of " << row_count_ << std::flush;
  on_screen_ = true;
  next_draw_ = now + kRedrawPeriod;
}

}  // namespace dpar::lab
