#include "tests/lab/progress_line.h"

#include <unistd.h>

#include <iostream>

#include "absl/time/clock.h"

namespace dpar::lab {
namespace {

constexpr absl::Duration kFirstDraw = absl::Seconds(1);
constexpr absl::Duration kRedrawPeriod = absl::Milliseconds(100);
constexpr const char* kClearLine = "\r\x1b[K";

}  // namespace

ProgressLine::ProgressLine() : is_terminal_(::isatty(STDERR_FILENO) == 1), next_draw_(absl::Now() + kFirstDraw) {}

ProgressLine::~ProgressLine() {
  if (on_screen_) {
    std::cerr << kClearLine << std::flush;
  }
}

void ProgressLine::Show(const std::string& text) {
  const absl::Time now = absl::Now();
  if (!is_terminal_ || now < next_draw_) {
    return;
  }
  std::cerr << kClearLine << text << std::flush;
  on_screen_ = true;
  next_draw_ = now + kRedrawPeriod;
}

}  // namespace dpar::lab
