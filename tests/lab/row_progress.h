// "rows 12 of 70" on stderr, for whoever waits at a terminal.
#ifndef DPAR_TESTS_LAB_ROW_PROGRESS_H_
#define DPAR_TESTS_LAB_ROW_PROGRESS_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "core/mutex.h"
#include "tests/lab/progress_line.h"

namespace dpar::lab {

class RowProgress {
 public:
  explicit RowProgress(int64_t row_count) : row_count_(row_count) {}

  // Safe from many threads.
  void Update(int64_t rows_done);

 private:
  int64_t row_count_;
  Mutex mutex_;
  ProgressLine line_ ABSL_GUARDED_BY(mutex_);
  int64_t most_rows_done_ ABSL_GUARDED_BY(mutex_) = 0;  // threads report out of order
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_ROW_PROGRESS_H_
