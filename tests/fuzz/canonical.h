#ifndef DPAR_TESTS_FUZZ_CANONICAL_H_
#define DPAR_TESTS_FUZZ_CANONICAL_H_

#include "core/graph/graph.h"

namespace dpar::fuzz {

// What graph.h promises about every graph.
void RequireCanonical(const GraphView& graph);

}  // namespace dpar::fuzz

#endif  // DPAR_TESTS_FUZZ_CANONICAL_H_
