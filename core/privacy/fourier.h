// A real Fourier transform, through FFTW. Every size is used once, and FFTW plans a complex transform out of place
// faster than a real one (2^19 points: 1.5 ms against 10 ms each way). So a real transform of N points is one complex
// transform of N/2 and a pass that separates the halves; one plan serves both ways.
#ifndef DPAR_CORE_PRIVACY_FOURIER_H_
#define DPAR_CORE_PRIVACY_FOURIER_H_

#include <complex>
#include <cstddef>
#include <memory>

#include "absl/types/span.h"

namespace dpar {

class RealTransform {
 public:
  // `size` is even and at least 2. Holds 2 size + 2 doubles, which start as zeros.
  explicit RealTransform(size_t size);
  ~RealTransform();
  RealTransform(const RealTransform&) = delete;
  RealTransform& operator=(const RealTransform&) = delete;

  // Valid before Forward and after Backward.
  [[nodiscard]] absl::Span<double> values() const;
  // Valid between the two: the size/2 + 1 coefficients of non-negative frequencies.
  [[nodiscard]] absl::Span<std::complex<double>> coefficients() const;

  void Forward();
  // Not normalised: Forward then Backward multiplies by size.
  void Backward();

  // The smallest size of the form 2^a 3^b 5^c that is even and at least `size`.
  static size_t FastSize(size_t size);

 private:
  struct Buffers;

  size_t size_;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace dpar

#endif  // DPAR_CORE_PRIVACY_FOURIER_H_
