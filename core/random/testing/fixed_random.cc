#include "core/random/testing/fixed_random.h"

#include <algorithm>
#include <cstring>

namespace dpar::testing {

void FixedRandom::Fill(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    state_ += 0x9E3779B97F4A7C15U;
    uint64_t bits = state_;
    bits = (bits ^ (bits >> 30U)) * 0xBF58476D1CE4E5B9U;
    bits = (bits ^ (bits >> 27U)) * 0x94D049BB133111EBU;
    bits ^= bits >> 31U;
    const size_t size = std::min(bytes.size(), sizeof(bits));
    std::memcpy(bytes.data(), &bits, size);
    bytes = bytes.subspan(size);
  }
}

std::unique_ptr<RandomSource> FixedRandom::Split() { return std::make_unique<FixedRandom>(UniformBits(*this)); }

void ConstantRandom::Fill(std::span<uint8_t> bytes) { std::fill(bytes.begin(), bytes.end(), byte_); }

std::unique_ptr<RandomSource> ConstantRandom::Split() { return std::make_unique<ConstantRandom>(byte_); }

}  // namespace dpar::testing
