// The DPAR paper's own accounting (WWW 2024), to reproduce its tables. These figures are claims and not bounds; the
// ledger never uses them. What the theorems leave out: one node can change all M rows and, through them, many
// gradients; clipping comes after aggregation, so the l1 norm of a column does not bound what one node moves; and
// sampling nodes at rate q' does not multiply epsilon by q'.
#ifndef DPAR_CORE_PRIVACY_PUBLISHED_H_
#define DPAR_CORE_PRIVACY_PUBLISHED_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "dpar/v1/privacy.pb.h"

namespace dpar {

inline constexpr int64_t kMaxSeeds = 1'000'000;
inline constexpr int64_t kMaxTopK = 1000;

enum class ApprMethod {
  kEm0,
  kEm1,
  kGm,
  kNone,  // no first stage: DP-SGD on the nodes' own features has all of delta
};

// The two stages: DP-APPR releases top_k entries for each of `seeds` nodes, DP-SGD trains on them.
struct DparPipeline {
  ApprMethod method = ApprMethod::kEm0;
  int64_t seeds = 70;             // M
  int64_t top_k = 2;              // K
  double appr_noise = 0;          // EM: Gumbel scale / C2. GM: standard deviation / C1.
  double value_noise = 0;         // EM1: Laplace scale / C2
  double sampling_rate = 0;       // of a batch, B / N
  double noise_multiplier = 0;    // standard deviation / C
  int64_t steps = 0;              // T
  int64_t max_occurrence = 1;     // rows that list a node besides its own; the theorems do not know it
  double node_sampling_rate = 1;  // q'
};

struct PublishedClaim {
  double appr_epsilon = 0;  // theorem 2, or that of DP-APPR-GM, at appr_delta
  double appr_delta = 0;
  double sgd_epsilon = 0;  // the moments bound of the released code, at sgd_delta
  double sgd_delta = 0;
  double epsilon = 0;  // theorem 3: q' (appr_epsilon + sgd_epsilon) at delta = q' (appr_delta + sgd_delta)
};

// By the theorems, with delta / (2 q') for each stage. A delta / (2 q') of 1 or more is refused.
//   EM   eps_1 = 2 min{K e, K e tanh(e) + e sqrt(2 K ln(1/d))}, e = 1 / appr_noise, d = appr_delta / (2 M);
//        EM1 adds eps_2 = K / value_noise
//   GM   eps_1 = sqrt(2 ln(1.25/d)) / appr_noise
//   all  eps_g with eps_1 = eps_g / (2 sqrt(M ln(e + eps_g / appr_delta))), solved for eps_g
//   SGD  min over orders a of R_a - ln(sgd_delta) / (a - 1), R_a of T Gaussians sampled at q = B / N: the
//        bound of the released code, without tau, since theorem 3 does not name its constants.
absl::StatusOr<PublishedClaim> PublishedEpsilon(const DparPipeline& pipeline, double delta);

// The pipeline's event: node sampling around the composition of
//   EM   M K selections of range 2 / appr_noise, and for EM1 M K Laplace mechanisms
//   GM   one Gaussian of sensitivity sqrt(2 M)
//   SGD  T row mixtures of 1 + max_occurrence rows.
absl::StatusOr<v1::PrivacyEvent> SoundEvent(const DparPipeline& pipeline);

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_PUBLISHED_H_
