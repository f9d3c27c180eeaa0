#include "server/auth/sessions.h"

#include "core/certificate/digest.h"
#include "server/random_text.h"

namespace dpar {
namespace {

constexpr size_t kSecretBytes = 32;

}  // namespace

std::string Sessions::Open(const std::string& token, absl::Time now, RandomSource& random) {
  std::string secret = RandomHex(random, kSecretBytes);
  const absl::MutexLock lock(&mutex_);
  std::erase_if(sessions_, [&](const auto& entry) { return IsOver(entry.second, now); });
  MakeRoom(token, options_.max_of_token);
  MakeRoom("", options_.max_sessions);
  sessions_[Sha256Hex(secret)] = {token, now, now};
  return secret;
}

void Sessions::MakeRoom(const std::string& token, size_t max) {
  size_t count = 0;
  auto oldest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (!token.empty() && it->second.token != token) {
      continue;
    }
    ++count;
    if (oldest == sessions_.end() || it->second.use_time < oldest->second.use_time) {
      oldest = it;
    }
  }
  if (count >= max && oldest != sessions_.end()) {
    sessions_.erase(oldest);
  }
}

std::optional<std::string> Sessions::Find(absl::string_view secret, absl::Time now) {
  const absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(Sha256Hex(secret));
  if (found == sessions_.end()) {
    return std::nullopt;
  }
  if (IsOver(found->second, now)) {
    sessions_.erase(found);
    return std::nullopt;
  }
  found->second.use_time = now;
  return found->second.token;
}

void Sessions::Close(absl::string_view secret) {
  const absl::MutexLock lock(&mutex_);
  sessions_.erase(Sha256Hex(secret));
}

size_t Sessions::size() const {
  const absl::MutexLock lock(&mutex_);
  return sessions_.size();
}

}  // namespace dpar
