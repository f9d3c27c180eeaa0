// SHA-256 of bytes that come in pieces.
#ifndef DPAR_CLIENT_SDK_SHA256_STREAM_H_
#define DPAR_CLIENT_SDK_SHA256_STREAM_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace dpar {

class Sha256Stream {
 public:
  Sha256Stream();
  Sha256Stream(Sha256Stream&& other) noexcept;
  Sha256Stream& operator=(Sha256Stream&& other) noexcept;
  ~Sha256Stream();

  void Add(absl::string_view piece);
  // Lower-case hex. Once, after the last piece.
  std::string Hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_SDK_SHA256_STREAM_H_
