// A true statement about an invented job, for tests.
#ifndef DPAR_CORE_CERTIFICATE_TESTING_EXAMPLE_STATEMENT_H_
#define DPAR_CORE_CERTIFICATE_TESTING_EXAMPLE_STATEMENT_H_

#include <cstdint>
#include <string>

#include "core/certificate/signing_key.h"
#include "core/certificate/statement.h"

namespace dpar {

// The degree promise of the example's dataset, which methods that read edges are priced by.
inline constexpr int64_t kExampleMaxDegree = 50;

// Epsilon 1, the method FEATURES, 97 steps.
v1::TrainingSpec ExampleSpec();

// A job that this spec was planned as, on a graph of 2995 nodes, at delta 3e-5 and under a cap of epsilon 8; every
// check of it passes. Subjects: model.npz and model.pt, the digests of the texts "npz" and "pt". A spec that is
// non_private gives a statement about public data.
Statement ExampleStatement(v1::TrainingSpec spec = ExampleSpec());

// The example about public data, with noise.
Statement ExamplePublicStatement();

// After a change of the event: its price and its ledger entry. After another change of what the entry's hash covers:
// the hash.
void Reprice(Statement& statement);
void RehashEntry(Statement& statement);

// An envelope around any payload, with a valid signature whatever the payload says.
std::string SignPayload(const std::string& payload, const SigningKey& key);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_TESTING_EXAMPLE_STATEMENT_H_
