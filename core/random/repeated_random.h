// A stream that can be read again, for planted faults (core/fault.h) under DPAR_TEST_SEAMS. Never draw noise from it.
#ifndef DPAR_CORE_RANDOM_REPEATED_RANDOM_H_
#define DPAR_CORE_RANDOM_REPEATED_RANDOM_H_

#ifdef DPAR_TEST_SEAMS

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/random/random.h"

namespace dpar {

class RepeatedRandom final : public RandomSource {
 public:
  explicit RepeatedRandom(std::unique_ptr<RandomSource> source)
      : record_(std::make_shared<Record>(Record{std::move(source), {}})) {}

  void Fill(std::span<uint8_t> bytes) override {
    const size_t known = record_->bytes.size();
    if (at_ + bytes.size() > known) {
      record_->bytes.resize(at_ + bytes.size());
      record_->source->Fill(std::span(record_->bytes).subspan(known));
    }
    std::copy_n(record_->bytes.begin() + static_cast<std::ptrdiff_t>(at_), bytes.size(), bytes.begin());
    at_ += bytes.size();
  }
  std::unique_ptr<RandomSource> Split() override { return record_->source->Split(); }

  void Rewind() { at_ = 0; }

  [[nodiscard]] std::unique_ptr<RandomSource> Twin() const {
    return std::unique_ptr<RandomSource>(new RepeatedRandom(record_));
  }

 private:
  struct Record {
    std::unique_ptr<RandomSource> source;
    std::vector<uint8_t> bytes;
  };
  explicit RepeatedRandom(std::shared_ptr<Record> record) : record_(std::move(record)) {}

  std::shared_ptr<Record> record_;
  size_t at_ = 0;
};

}  // namespace dpar

#endif

#endif  // DPAR_CORE_RANDOM_REPEATED_RANDOM_H_
