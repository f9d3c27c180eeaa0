#include "tests/lab/row_progress.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace dpar::lab {

void RowProgress::Update(int64_t rows_done) {
  const MutexLock lock(&mutex_);
  most_rows_done_ = std::max(most_rows_done_, rows_done);
  line_.Show(absl::StrCat("rows ", most_rows_done_, " of ", row_count_));
}

}  // namespace dpar::lab
