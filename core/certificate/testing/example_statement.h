// A true statement about an invented job, for tests.
#ifndef DPAR_CORE_CERTIFICATE_TESTING_EXAMPLE_STATEMENT_H_
#define DPAR_CORE_CERTIFICATE_TESTING_EXAMPLE_STATEMENT_H_

#include <string>

#include "core/certificate/signing_key.h"
#include "core/certificate/statement.h"

namespace dpar {

// A private job at epsilon 1 whose every check passes. Subjects: model.npz and model.pt, the digests of the texts "npz"
// and "pt".
Statement ExampleStatement();

// The same about public data.
Statement ExamplePublicStatement();

// An envelope around any payload, with a valid signature whatever the payload says.
std::string SignPayload(const std::string& payload, const SigningKey& key);

}  // namespace dpar

#endif  // DPAR_CORE_CERTIFICATE_TESTING_EXAMPLE_STATEMENT_H_
