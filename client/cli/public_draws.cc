#include "client/cli/public_draws.h"

#include "core/random/secure_random.h"

namespace dpar {

std::unique_ptr<RandomSource> PublicDraws(std::optional<uint64_t> seed, RandomSource& fresh) {
  return seed.has_value() ? ReproducibleRandom(*seed) : fresh.Split();
}

}  // namespace dpar
