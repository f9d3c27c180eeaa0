// Label shift: the classes of the caller's graph are mixed differently than those of the training graph, as on a
// connected region or in another month. Reads the released model and the caller's graph alone: post-processing.
#ifndef DPAR_CORE_INFER_LABEL_SHIFT_H_
#define DPAR_CORE_INFER_LABEL_SHIFT_H_

#include "core/infer/model.h"
#include "core/infer/predict.h"
#include "core/infer/row_blocks.h"

namespace dpar {

// A node's scores are U = ScoreScale(nu) H: its logits H, tempered by their noise nu.
double ScoreScale(double logit_noise);  // 2 / sqrt(1 + pi nu^2 / 8)

// With U the scores of `logits`, P the model's class shares, s their noise (Model.share_noise), c classes and n nodes:
//   Q = mean of softmax(U),   distance = |Q - P|_1 / 2,   threshold = 0.03 + 0.6 c sqrt(s^2 + 1 / (c n)).
// Above the threshold, the correction b is 0, then 30 times: p = (sum of softmax(U + b) + 1) / (n + c), b = log(p / P).
// Needs class shares and at least one node. The result does not depend on `threads`. Time 30 n c.
LabelShift FindLabelShift(const Model& model, const NodeMatrix& logits, int threads);

// U + b in place of H; b is 0 where no shift was found.
void MakeScores(const Model& model, const LabelShift& shift, int threads, NodeMatrix& logits);

}  // namespace dpar

#endif  // DPAR_CORE_INFER_LABEL_SHIFT_H_
