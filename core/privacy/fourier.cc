#include "core/privacy/fourier.h"

#include <fftw3.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace dpar {
namespace {

using Complex = std::complex<double>;

constexpr double kTwoPi = 6.28318530717958647692;

// Only FFTW's planner needs the lock; plans run on any thread.
std::mutex& PlannerMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

// std::complex multiplication checks for infinities that cannot occur here.
Complex Product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

class Twiddles {
 public:
  explicit Twiddles(size_t size) {
    const double angle = -kTwoPi / static_cast<double>(size);
    for (size_t k = 0; k < kBlock; ++k) {
      fine_.push_back(std::polar(1.0, angle * static_cast<double>(k)));
    }
    for (size_t k = 0; k <= size / 2; k += kBlock) {
      coarse_.push_back(std::polar(1.0, angle * static_cast<double>(k)));
    }
  }
  [[nodiscard]] Complex operator()(size_t k) const { return Product(coarse_[k / kBlock], fine_[k % kBlock]); }

 private:
  static constexpr size_t kBlock = 512;
  std::vector<Complex> fine_;
  std::vector<Complex> coarse_;
};

}  // namespace

struct RealTransform::Buffers {
  explicit Buffers(size_t size)
      : twiddles(size), values(fftw_alloc_real(size)), spectrum(fftw_alloc_complex(size / 2 + 1)), plan([&] {
          const std::lock_guard lock(PlannerMutex());
          return fftw_plan_dft_1d(static_cast<int>(size / 2), reinterpret_cast<fftw_complex*>(values), spectrum,
                                  FFTW_FORWARD, FFTW_ESTIMATE | FFTW_PRESERVE_INPUT);
        }()) {
    std::memset(values, 0, size * sizeof(double));
  }
  ~Buffers() {
    const std::lock_guard lock(PlannerMutex());
    fftw_destroy_plan(plan);
    fftw_free(values);
    fftw_free(spectrum);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  Twiddles twiddles;
  double* values;
  fftw_complex* spectrum;
  fftw_plan plan;
};

RealTransform::RealTransform(size_t size) : size_(size), buffers_(std::make_unique<Buffers>(size)) {}
RealTransform::~RealTransform() = default;

absl::Span<double> RealTransform::values() const { return {buffers_->values, size_}; }

absl::Span<Complex> RealTransform::coefficients() const {
  return {reinterpret_cast<Complex*>(buffers_->spectrum), size_ / 2 + 1};
}

// With z_j = x_2j + i x_2j+1 and E, O the transforms of the even and the odd values, Z_k = E_k + i O_k and
// X_k = E_k + e^(-2 pi i k / N) O_k.
void RealTransform::Forward() {
  fftw_execute(buffers_->plan);
  const absl::Span<Complex> z = coefficients();
  const size_t half = size_ / 2;
  z[half] = z[0].real() - z[0].imag();
  z[0] = z[0].real() + z[0].imag();
  for (size_t k = 1; k <= half - k; ++k) {
    const Complex a = z[k];
    const Complex b = std::conj(z[half - k]);
    const Complex even = (a + b) * 0.5;
    const Complex difference = (a - b) * 0.5;
    const Complex odd = Product(buffers_->twiddles(k), {difference.imag(), -difference.real()});
    z[k] = even + odd;
    z[half - k] = std::conj(even - odd);
  }
}

// The inverse of a transform is the transform with real and imaginary parts exchanged before and after.
void RealTransform::Backward() {
  const absl::Span<Complex> x = coefficients();
  const size_t half = size_ / 2;
  const double first = x[0].real();
  const double last = x[half].real();
  x[0] = {first - last, first + last};
  for (size_t k = 1; k <= half - k; ++k) {
    const Complex even = x[k] + std::conj(x[half - k]);
    const Complex odd = Product(std::conj(buffers_->twiddles(k)), x[k] - std::conj(x[half - k]));
    x[k] = {even.imag() + odd.real(), even.real() - odd.imag()};
    x[half - k] = {odd.real() - even.imag(), even.real() + odd.imag()};
  }
  fftw_execute_dft(buffers_->plan, buffers_->spectrum, reinterpret_cast<fftw_complex*>(buffers_->values));
  for (size_t i = 0; i < size_; i += 2) {
    std::swap(buffers_->values[i], buffers_->values[i + 1]);
  }
}

size_t RealTransform::FastSize(size_t size) {
  size_t best = 2;
  while (best < size) {
    best *= 2;
  }
  for (size_t fives = 1; fives < best; fives *= 5) {
    for (size_t odd = fives; odd < best; odd *= 3) {
      size_t candidate = 2 * odd;
      while (candidate < size) {
        candidate *= 2;
      }
      best = std::min(best, candidate);
    }
  }
  return best;
}

}  // namespace dpar
