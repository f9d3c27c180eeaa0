// Work that asks whether to go on.
#ifndef DPAR_CORE_GRAPH_TESTING_QUESTIONS_H_
#define DPAR_CORE_GRAPH_TESTING_QUESTIONS_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"

namespace dpar::testing {

// Runs the work to its end, and then once for each question that it asked, with a no to that one and a yes to all
// others. Expects CANCELLED each time. The number of questions.
int64_t CancelAtEveryQuestion(const std::function<absl::Status(const std::function<bool()>& keep_going)>& work);

}  // namespace dpar::testing

#endif  // DPAR_CORE_GRAPH_TESTING_QUESTIONS_H_
