// What the papers of GAP and SAGE claim for their noise, to reproduce their tables. These figures are claims and not
// bounds; the ledger never uses them.
//   GAP   (Sajadmanesh et al., USENIX Security 2023) charges a hop of aggregation with l2 sensitivity sqrt(D), for the
//         rows of the removed node's neighbours. It omits the node's own row, which goes from up to D to 0.
//   SAGE  (Daigavane et al., 2021) bounds the degree by dropping edges at random, and assumes that a removed node then
//         changes at most D + 1 terms. Which edges others keep depends on the node as well, and nothing bounds that.
// Here neither drops an edge: D is a degree promise that both graphs keep.
#ifndef DPAR_CORE_PRIVACY_PUBLISHED_RIVALS_H_
#define DPAR_CORE_PRIVACY_PUBLISHED_RIVALS_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace dpar {

struct GapPipeline {
  int64_t max_degree = 1;        // D
  int64_t hops = 1;              // K
  double aggregation_noise = 0;  // standard deviation; rows that are summed have norm 1
  double sampling_rate = 0;      // of a batch
  double noise_multiplier = 0;   // standard deviation / C of either training
  int64_t steps = 0;             // T, of either training
};

// min over orders a of R_a - ln(delta) / (a - 1), where R_a is K a D / (2 aggregation_noise^2) and that of 2 T
// Poisson-sampled Gaussians.
absl::StatusOr<double> PublishedEpsilon(const GapPipeline& pipeline, double delta);

// DP-SGD. A node is in at most D + 1 terms, each of which moves by at most 2 C.
struct SagePipeline {
  int64_t max_degree = 1;       // D
  int64_t slots = 0;            // N, terms that a batch is drawn from
  int64_t batch_size = 0;       // drawn without replacement
  double noise_multiplier = 0;  // standard deviation / C
  int64_t steps = 0;            // T
};

// T times the divergence ln(E[e^(a (a-1) (2 rho / noise_multiplier)^2 / 2]) / (a - 1), rho hypergeometric: how many of
// the D + 1 terms are among batch_size of N. Converted as the released code does (renyi.h), at the best order.
absl::StatusOr<double> PublishedEpsilon(const SagePipeline& pipeline, double delta);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_PUBLISHED_RIVALS_H_
