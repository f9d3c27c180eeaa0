// "rows 12 of 70" on stderr, for whoever waits at a terminal.
#ifndef DPAR_TESTS_LAB_ROW_PROGRESS_H_
#define DPAR_TESTS_LAB_ROW_PROGRESS_H_

#include <cstdint>
#include <mutex>

#include "absl/time/time.h"

namespace dpar::lab {

// Shows nothing within the first second, nor where stderr is no terminal. The line is redrawn in place, and gone when
// this object is.
class RowProgress {
 public:
  explicit RowProgress(int64_t row_count);
  ~RowProgress();
  RowProgress(const RowProgress&) = delete;
  RowProgress& operator=(const RowProgress&) = delete;

  // Safe from many threads.
  void Update(int64_t rows_done);

 private:
  int64_t row_count_;
  bool is_terminal_;
  std::mutex mutex_;
  absl::Time next_draw_;        // guarded by mutex_, like what follows
  int64_t most_rows_done_ = 0;  // threads report out of order
  bool on_screen_ = false;
};

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_ROW_PROGRESS_H_
