// Runs the cells of a study that were not run yet, on all cores.
#ifndef DPAR_TESTS_LAB_CELL_RUNNER_H_
#define DPAR_TESTS_LAB_CELL_RUNNER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "tests/lab/cell.h"
#include "tests/lab/results_file.h"
#include "tests/lab/study_graph.h"

namespace dpar::lab {

// The results of `cells`, in their order. What `file` lacks is computed, one cell a thread, and appended as soon as it
// is there; a terminal sees how far it is. Every plan and every split is computed once, whatever cells share it, and
// the longest cells come first, so that no core is idle at the end. Fails with the first error of any cell; what was
// computed until then is in the file.
absl::StatusOr<std::vector<CellResult>> RunCells(const std::vector<Cell>& cells, const std::vector<StudyGraph>& graphs,
                                                 int threads, ResultsFile& file);

}  // namespace dpar::lab

#endif  // DPAR_TESTS_LAB_CELL_RUNNER_H_
