// A line on stderr that says how far the work is, for whoever waits at a terminal.
#ifndef DPAR_TESTS_LAB_PROGRESS_LINE_H_
#define DPAR_TESTS_LAB_PROGRESS_LINE_H_

#include <string>

#include "absl/time/time.h"

namespace dpar::lab {

// Shows nothing within the first second, nor where stderr is no terminal. The line is redrawn in place, ten times a
// second at most, and gone when this object is.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(const std::string& text);

 private:
  bool is_terminal_;
  absl::Time next_draw_;
  bool on_screen_ = false;
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_PROGRESS_LINE_H_
