// Places where the audit (tests/audit) plants a fault to show that it would be found. In production builds DPAR_FAULT
// is its sound argument and DPAR_FAULT_DO is empty, so objects are those of the source without them. Only the
// DPAR_TEST_SEAMS variant knows faults, and has none until a test plants one.
#ifndef DPAR_CORE_FAULT_H_
#define DPAR_CORE_FAULT_H_

#ifdef DPAR_TEST_SEAMS

namespace dpar {

enum class Fault {
  kNone,
  kHalfNoise,            // steps draw noise of half the planned scale
  kNoiseBeforeClipping,  // noise goes to each row's gradient before it is clipped, and none to the sum
  kReusedBatchNoise,     // every step adds the noise of the first
  kNoClipping,           // gradients are summed as they are
  kClippingPerLayer,     // each layer's gradient is clipped to the bound that is meant for all
  kActualBatchSize,      // sums are divided by the number of live rows
  kShuffledBatches,      // batches have a fixed size, as shuffling makes them
  kNoColumnCap,          // slots are listed as often as they come
  kNoNullRule,           // rows that list a null slot stay
  kReusedRowNoise,       // every second DP-APPR row has the noise of the one before
  kHalfSelectionNoise,   // selections draw Gumbel noise of half the planned scale
  kFixedSeed,            // the production source starts from a constant
  kProgressLeaksLoss,    // progress counts up to a number that follows the loss
  kUnchargedEvaluation,  // the event leaves the evaluation out
  kOwnSumUncharged,      // a hop of GAP is charged with sqrt(D), as its paper does
  kRowsMoveOnce,         // GM is charged with sqrt(M), as if a row could only vanish
  kHalfValueNoise,       // EM1 draws Laplace noise of half the planned scale
  kChangedRowsOnce,      // SAGE's changed rows are charged as rows that vanish
  kUnchargedShares,      // the event leaves the class shares out
  kOversampledNodes,     // node sampling keeps 1.5 times as many slots as planned
};

inline Fault planted_fault = Fault::kNone;  // set by one thread while no other runs

}  // namespace dpar

#define DPAR_FAULT(fault, planted, sound) (::dpar::planted_fault == ::dpar::Fault::fault ? (planted) : (sound))
#define DPAR_FAULT_DO(fault, statement)                  \
  do {                                                   \
    if (::dpar::planted_fault == ::dpar::Fault::fault) { \
      statement;                                         \
    }                                                    \
  } while (false)

#else

#define DPAR_FAULT(fault, planted, sound) (sound)
#define DPAR_FAULT_DO(fault, statement) static_cast<void>(0)

#endif

#endif  // DPAR_CORE_FAULT_H_
