#include "server/page/sessions.h"

#include "core/certificate/digest.h"
#include "server/auth/token.h"
#include "server/random_text.h"

namespace dpar {
namespace {

constexpr size_t kSecretBytes = 32;
// Concurrent requests may come a moment before the last use; more than that means the clock was set back.
constexpr absl::Duration kClockSlack = absl::Minutes(1);

absl::string_view OwnerOf(absl::string_view token) { return token.substr(0, token.find("/tokens/")); }

}  // namespace

bool Sessions::IsOver(const Session& session, absl::Time now) const {
  const absl::Duration unused = now - session.use_time;
  return unused >= options_.idle || unused < -kClockSlack || now - session.open_time >= options_.life;
}

std::string Sessions::Open(const std::string& token, absl::Time now, RandomSource& random) {
  std::string secret = RandomHex(random, kSecretBytes);
  const MutexLock lock(&mutex_);
  std::erase_if(sessions_, [&](const auto& entry) { return IsOver(entry.second, now); });
  MakeRoom([&](const std::string& other) { return other == token; }, options_.max_of_token);
  MakeRoom([&](const std::string& other) { return OwnerOf(other) == OwnerOf(token); }, options_.max_of_owner);
  if (OwnerOf(token) != kOperatorParent) {
    MakeRoom([](const std::string& other) { return OwnerOf(other) != kOperatorParent; }, options_.max_of_tenants);
  }
  sessions_[Sha256Hex(secret)] = {token, now, now};
  return secret;
}

void Sessions::MakeRoom(const std::function<bool(const std::string& token)>& counts, size_t max) {
  size_t count = 0;
  auto oldest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    if (!counts(it->second.token)) {
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
  const MutexLock lock(&mutex_);
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
  const MutexLock lock(&mutex_);
  sessions_.erase(Sha256Hex(secret));
}

size_t Sessions::size() const {
  const MutexLock lock(&mutex_);
  return sessions_.size();
}

}  // namespace dpar
