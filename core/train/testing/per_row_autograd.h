// Summed clipped gradients by one backward pass for each row on dense inputs, written from the definitions of
// input_rows.h and engine.h.
#ifndef DPAR_CORE_TRAIN_TESTING_PER_ROW_AUTOGRAD_H_
#define DPAR_CORE_TRAIN_TESTING_PER_ROW_AUTOGRAD_H_

#include <vector>

#include "core/graph/graph.h"
#include "core/train/engine.h"

namespace dpar::testing {

struct Reference {
  std::vector<double> sum;
  std::vector<double> norms;  // of each row before clipping
};
Reference PerRowAutograd(const Graph& graph, const RowList& rows, v1::Transform transform,
                         const std::vector<float>& center, const WeightShape& shape, const std::vector<float>& weights,
                         double clip);

double Distance(const std::vector<double>& a, const std::vector<double>& b);
double Norm(const std::vector<double>& a);

}  // namespace dpar::testing

#endif  // DPAR_CORE_TRAIN_TESTING_PER_ROW_AUTOGRAD_H_
