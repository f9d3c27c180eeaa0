// How fast the samplers are: build/release/bin/random_benchmark
//
// What the exact noise costs shows beside plain noise: Box-Muller in doubles, rounded to the same lattice without
// regard to its error, which production does not use.
//
// Another reference is LibTorch's normal_() into a tensor of floats on one thread, with a generator that is fast and
// not secure; ours are doubles from a keystream. Both fill the same number of values again and again in place, so that
// memory is no part of it. The measurements take turns and the fastest turn of each counts, since others share the
// machine. Two threads need two free cores at once, so the load average is printed beside them. LibTorch's two threads
// have a tensor and a generator each: one call of normal_() uses one thread whatever it is allowed. The floor is the
// keystream alone.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/random/lattice.h"
#include "core/random/secure_random.h"
#include "core/random/testing/plain_noise.h"

namespace dpar {
namespace {

constexpr int64_t kValues = int64_t{1} << 16U;  // 512 KiB of doubles
constexpr int kRefills = 4;                     // in one turn: about a millisecond, to fit between what others do
constexpr int kTurns = 400;

using Refill = std::function<void()>;
using Fill = void (*)(RandomSource& random, std::span<double> out);

struct Measurement {
  std::string name;
  std::vector<Refill> threads;  // one each
  bool keystream = false;       // eight bytes of it a value
  double seconds = std::numeric_limits<double>::infinity();

  [[nodiscard]] double PerSecond() const {
    return static_cast<double>(threads.size()) * static_cast<double>(kValues) * kRefills / seconds;
  }
};

// Each refill owns its source and its values, as a thread does.
Refill OurRefill(Fill fill) {
  auto random = std::make_shared<SecureRandom>();
  auto values = std::make_shared<std::vector<double>>(kValues);
  return [=] { fill(*random, *values); };
}

Refill KeystreamRefill() {
  auto random = std::make_shared<SecureRandom>();
  auto bytes = std::make_shared<std::vector<uint8_t>>(kValues * sizeof(double));
  return [=] { random->Fill(*bytes); };
}

Refill TorchRefill(at::ScalarType type) {
  constexpr uint64_t kSeed = 1;
  const at::Tensor values = at::empty({kValues}, type);
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(kSeed);
  return [=] { values.normal_(0, 1, generator); };
}

// What training adds to a sum of gradients.
constexpr double kNoise = 1.7;
constexpr int kLatticeBits = 24;

void AddGaussian(RandomSource& random, std::span<double> out) { AddLatticeNoise(random, kNoise, kLatticeBits, out); }
void AddFineGaussian(RandomSource& random, std::span<double> out) { AddLatticeNoise(random, kNoise, 30, out); }
void AddLaplace(RandomSource& random, std::span<double> out) { AddLatticeLaplace(random, kNoise, kLatticeBits, out); }

// The same, with a plain sampler, and as total.
template <Fill kFill>
void AddPlain(RandomSource& random, std::span<double> out) {
  constexpr size_t kBlock = 1024;
  constexpr double kFewSteps = 0x1p50;
  constexpr double kToWhole = 0x1.8p52;  // x + kToWhole - kToWhole is x rounded to a whole number
  const double step = LatticeStep(kNoise, kLatticeBits);
  const double steps_per_unit = 1 / step;
  std::array<double, kBlock> noise{};
  for (; !out.empty(); out = out.subspan(std::min(out.size(), kBlock))) {
    const std::span<double> block = out.first(std::min(out.size(), kBlock));
    kFill(random, std::span(noise).first(block.size()));
    bool few = true;
    for (const double value : block) {
      few &= std::abs(value * steps_per_unit) < kFewSteps;
    }
    if (!few) {
      std::abort();
    }
    for (size_t i = 0; i < block.size(); ++i) {
      const double value_steps = (block[i] * steps_per_unit + kToWhole) - kToWhole;
      const double noise_steps = (noise[i] * (kNoise * steps_per_unit) + kToWhole) - kToWhole;
      block[i] = (value_steps + noise_steps) * step;
    }
  }
}

double SecondsOf(const Measurement& measured) {
  // A thread's first refill is not timed: starting the thread and what LibTorch sets up in it are no part of the work.
  std::barrier together(static_cast<std::ptrdiff_t>(measured.threads.size()));
  const auto work = [&](const Refill& refill) {
    refill();
    together.arrive_and_wait();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kRefills; ++i) {
      refill();
    }
    together.arrive_and_wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::vector<std::thread> others;
  for (size_t i = 1; i < measured.threads.size(); ++i) {
    others.emplace_back(work, std::cref(measured.threads[i]));
  }
  const double seconds = work(measured.threads[0]);
  for (std::thread& other : others) {
    other.join();
  }
  return seconds;
}

struct Measurements {
  Measurement torch{"torch normal_, floats", {TorchRefill(at::kFloat)}};
  Measurement torch_doubles{"torch normal_, doubles", {TorchRefill(at::kDouble)}};
  Measurement exact{"exact Gaussian, 24 bits", {OurRefill(AddGaussian)}, true};
  Measurement plain{"plain Gaussian, 24 bits", {OurRefill(AddPlain<testing::FillGaussian>)}, true};
  Measurement exact_fine{"exact Gaussian, 30 bits", {OurRefill(AddFineGaussian)}, true};
  Measurement unrounded{"plain Gaussian, not rounded", {OurRefill(testing::FillGaussian)}, true};
  Measurement exact_laplace{"exact Laplace, 24 bits", {OurRefill(AddLaplace)}, true};
  Measurement plain_laplace{"plain Laplace, 24 bits", {OurRefill(AddPlain<testing::FillLaplace>)}, true};
  Measurement torch_twice{"torch normal_, floats, 2 threads", {TorchRefill(at::kFloat), TorchRefill(at::kFloat)}};
  Measurement exact_twice{"exact Gaussian, 2 threads", {OurRefill(AddGaussian), OurRefill(AddGaussian)}, true};
  Measurement keystream{"SecureRandom::Fill, 8 bytes a value", {KeystreamRefill()}, true};

  [[nodiscard]] std::vector<Measurement*> All() {
    return {&torch,         &torch_doubles, &exact,       &plain,       &exact_fine, &unrounded,
            &exact_laplace, &plain_laplace, &torch_twice, &exact_twice, &keystream};
  }
};

void Print(const Measurement& measured, const Measurements& all) {
  const double rate = measured.PerSecond();
  const auto threads = static_cast<double>(measured.threads.size());
  const double floor = all.keystream.PerSecond() * threads;
  absl::PrintF("%-38s %10.1f %9.2f %8.2f %11s %9s\n", measured.name, rate / 1e6, 1e9 / rate,
               rate / all.torch.PerSecond(),
               measured.keystream ? absl::StrFormat("%.2f", rate * sizeof(double) / 1e9) : "-",
               measured.keystream ? absl::StrFormat("%.1f", floor / rate) : "-");
}

void Run() {
  at::set_num_threads(1);
  Measurements all;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Measurement* measured : all.All()) {
      measured->seconds = std::min(measured->seconds, SecondsOf(*measured));
    }
  }
  absl::PrintF("%d values filled again and again in place; the fastest of %d turns; one thread unless it says two\n",
               kValues, kTurns);
  absl::PrintF("x floor: how often the keystream alone would fit into the time.\n\n");
  absl::PrintF("%-38s %10s %9s %8s %11s %9s\n", "", "million/s", "ns/value", "x torch", "stream GB/s", "x floor");
  for (const Measurement* measured : all.All()) {
    Print(*measured, all);
  }
  double load = 0;
  getloadavg(&load, 1);
  absl::PrintF("\nload average over the last minute, this included: %.1f on %d cores\n", load,
               std::thread::hardware_concurrency());
  absl::PrintF("exact over plain: Gaussian x %.2f, Laplace x %.2f\n", all.exact.PerSecond() / all.plain.PerSecond(),
               all.exact_laplace.PerSecond() / all.plain_laplace.PerSecond());
  absl::PrintF("two threads over one: exact Gaussian x %.2f, torch x %.2f; exact Gaussian over torch on two: x %.2f\n",
               all.exact_twice.PerSecond() / all.exact.PerSecond(), all.torch_twice.PerSecond() / all.torch.PerSecond(),
               all.exact_twice.PerSecond() / all.torch_twice.PerSecond());
}

}  // namespace
}  // namespace dpar

int main() {
  dpar::Run();
  return EXIT_SUCCESS;
}
