#ifndef DPAR_CLIENT_CLI_PUBLIC_DRAWS_H_
#define DPAR_CLIENT_CLI_PUBLIC_DRAWS_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "core/random/random.h"

namespace dpar {

// For what hides nothing and is public anyway, splits over slots and generated data: the same for the same seed, fresh
// without one. Never for noise.
std::unique_ptr<RandomSource> PublicDraws(std::optional<uint64_t> seed, RandomSource& fresh);

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_PUBLIC_DRAWS_H_
