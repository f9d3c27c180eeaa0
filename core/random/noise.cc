#include "core/random/noise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <utility>

#include "core/random/interval.h"
#include "core/random/vector_math.h"

namespace dpar {
namespace {

constexpr size_t kBlock = 1024;  // words at a time, to stay in the first-level cache
constexpr int64_t kUndecided = std::numeric_limits<int64_t>::min();
constexpr uint64_t kOne = 0x3ff0000000000000U;
constexpr uint64_t kPlaceBits = 0x000fffffffffffffU;
constexpr int kPlaceCount = 52;
constexpr unsigned kFirstSign = 63;
constexpr unsigned kSecondSign = 62;
constexpr unsigned kExchange = 61;
constexpr double kEighthTurn = std::numbers::pi / 4;

// x + kToWhole with |x| < 2^51 rounds to a whole number, which its low bits hold.
constexpr double kToWhole = 0x1.8p52;

// How far a coordinate times its radius can be from the ideal draw (docs/privacy.md, section 2): for a squared radius
// below kLargestSquare, kSquareError of the square plus kUniformError.
constexpr double kLargestSquare = 25;
constexpr double kSquareError = 0x1p-48;
constexpr double kUniformError = 0x1p-51;

[[gnu::always_inline]] inline uint64_t MaskOf(uint64_t word, unsigned bit) {
  return static_cast<int64_t>(word << (63U - bit)) < 0 ? ~uint64_t{0} : 0;
}

[[gnu::always_inline]] inline int64_t Signed(uint64_t magnitude, uint64_t mask) {
  return static_cast<int64_t>((magnitude ^ mask) - mask);
}

// out[i] and out[pairs + i] are the normals of radius bits[i] and direction bits[pairs + i]. out[i] is kUndecided where
// doubles cannot tell a cell; returns whether there is such a pair.
[[gnu::always_inline]] inline bool GaussianLoop(const uint64_t* bits, size_t pairs, double scale,
                                                int64_t* __restrict out) {
  const double square_error = scale * scale * kSquareError;
  const double uniform_error = scale * scale * kUniformError;
  uint64_t any_undecided = 0;
  for (size_t i = 0; i < pairs; ++i) {
    const uint64_t turn = bits[pairs + i];
    const double square = -2 * VectorLog(UnitReal(bits[i]));
    const double radius = std::sqrt(square) * scale;
    const double angle = (std::bit_cast<double>((turn & kPlaceBits) | kOne) - 1) * kEighthTurn;
    const double cosine = radius * VectorCos(angle);
    const double sine = radius * VectorSin(angle);
    const double whole_cosine = cosine + kToWhole;
    const double whole_sine = sine + kToWhole;
    const double cosine_off = std::abs(cosine - (whole_cosine - kToWhole));
    const double sine_off = std::abs(sine - (whole_sine - kToWhole));
    const double off = cosine_off > sine_off ? cosine_off : sine_off;
    const bool decided = ((0.5 - off) * radius > square * square_error + uniform_error) & (square < kLargestSquare);
    const uint64_t undecided = decided ? 0 : ~uint64_t{0};
    const uint64_t cosine_steps = std::bit_cast<uint64_t>(whole_cosine) - std::bit_cast<uint64_t>(kToWhole);
    const uint64_t sine_steps = std::bit_cast<uint64_t>(whole_sine) - std::bit_cast<uint64_t>(kToWhole);
    const uint64_t exchange = (cosine_steps ^ sine_steps) & MaskOf(turn, kExchange);
    const int64_t first = Signed(cosine_steps ^ exchange, MaskOf(turn, kFirstSign));
    out[i] = decided ? first : kUndecided;
    out[pairs + i] = Signed(sine_steps ^ exchange, MaskOf(turn, kSecondSign));
    any_undecided |= undecided;
  }
  return any_undecided != 0;
}

// Compiled for any processor and for AVX2. The two may leave different pairs undecided; decided ones agree.
using Kernel = bool (*)(const uint64_t* bits, size_t pairs, double scale, int64_t* out);
bool PlainGaussian(const uint64_t* bits, size_t pairs, double scale, int64_t* out) {
  return GaussianLoop(bits, pairs, scale, out);
}
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] bool Avx2Gaussian(const uint64_t* bits, size_t pairs, double scale, int64_t* out) {
  return GaussianLoop(bits, pairs, scale, out);
}
#endif

Kernel GaussianKernel() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0) {
    return Avx2Gaussian;
  }
#endif
  return PlainGaussian;
}

std::optional<int64_t> NearestSteps(Interval x, double scale) { return x.Multiply(scale).Add(0.5).Floor(); }

}  // namespace

LazyTurn::LazyTurn(uint64_t word) : LazyTurn(word >> kExchange, LazyUniform(word & kPlaceBits, kPlaceCount)) {}

LazyTurn::LazyTurn(uint64_t eighth_bits, LazyUniform place_in_eighth)
    : is_negative{(eighth_bits & 4U) != 0, (eighth_bits & 2U) != 0},
      is_exchanged((eighth_bits & 1U) != 0),
      place(std::move(place_in_eighth)) {}

Interval LazyTurn::EncloseCoordinate(size_t coordinate, int precision, RandomSource& random) {
  Interval angle = place.Enclose(precision, random);
  angle.Multiply(Interval::Pi(precision)).Divide(4);
  if ((coordinate == 1) == is_exchanged) {
    angle.Cos();
  } else {
    angle.Sin();
  }
  return angle;
}

Enclosure KnownNormal(const Enclosure& radius, uint64_t turn) {
  // 2.7u for the angle, which the bits to come move by up to 2u pi/4, and 3u for the series.
  constexpr double kError = 0x1p-50;
  const double angle = (std::bit_cast<double>((turn & kPlaceBits) | kOne) - 1) * kEighthTurn;
  const double coordinate = MaskOf(turn, kExchange) == 0 ? VectorCos(angle) : VectorSin(angle);
  const Enclosure magnitude =
      Outward(radius.low * std::max(0.0, coordinate - kError), radius.high * (coordinate + kError));
  return MaskOf(turn, kFirstSign) == 0 ? magnitude : Enclosure{-magnitude.high, -magnitude.low};
}

std::array<int64_t, 2> GaussianPairSteps(LazyUniform radius, LazyTurn turn, double steps_per_deviation,
                                         RandomSource& random) {
  std::array<int64_t, 2> steps{};
  for (size_t coordinate = 0; coordinate < steps.size(); ++coordinate) {
    steps[coordinate] = AtRisingPrecision([&](int precision) {
      Interval magnitude = radius.EncloseExponential(precision, random);
      magnitude.Multiply(2).Sqrt().Multiply(turn.EncloseCoordinate(coordinate, precision, random));
      return NearestSteps(std::move(magnitude), steps_per_deviation);
    });
    if (turn.is_negative[coordinate]) {
      steps[coordinate] = -steps[coordinate];
    }
  }
  return steps;
}

void FillGaussianSteps(RandomSource& random, double steps_per_deviation, std::span<int64_t> out) {
  if (out.size() % 2 == 1) {
    std::array<int64_t, 2> pair{};
    FillGaussianSteps(random, steps_per_deviation, pair);
    out.back() = pair[0];
    out = out.first(out.size() - 1);
  }
  const Kernel kernel = GaussianKernel();
  std::array<uint64_t, kBlock> bits;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled before it is read
  while (!out.empty()) {
    const size_t size = std::min(out.size(), kBlock);
    const size_t pairs = size / 2;
    random.Fill({reinterpret_cast<uint8_t*>(bits.data()), size * sizeof(uint64_t)});
    if (kernel(bits.data(), pairs, steps_per_deviation, out.data())) {
      for (size_t i = 0; i < pairs; ++i) {
        if (out[i] == kUndecided) {
          const std::array<int64_t, 2> pair =
              GaussianPairSteps(LazyUniform(bits[i]), LazyTurn(bits[pairs + i]), steps_per_deviation, random);
          out[i] = pair[0];
          out[pairs + i] = pair[1];
        }
      }
    }
    out = out.subspan(size);
  }
}

int64_t LaplaceSteps(LazyUniform magnitude, bool is_negative, double steps_per_scale, RandomSource& random) {
  const int64_t steps = AtRisingPrecision(
      [&](int precision) { return NearestSteps(magnitude.EncloseExponential(precision, random), steps_per_scale); });
  return is_negative ? -steps : steps;
}

void FillLaplaceSteps(RandomSource& random, double steps_per_scale, std::span<int64_t> out) {
  constexpr int kMagnitudeBits = 63;
  for (int64_t& steps : out) {
    const uint64_t bits = UniformBits(random);
    const bool is_negative = (bits & 1U) != 0;
    const LazyUniform magnitude(bits >> 1U, kMagnitudeBits);
    if (const auto known = KnownSteps(magnitude.KnownExponential(), steps_per_scale); known.has_value()) {
      steps = is_negative ? -*known : *known;
    } else {
      steps = LaplaceSteps(magnitude, is_negative, steps_per_scale, random);
    }
  }
}

}  // namespace dpar
