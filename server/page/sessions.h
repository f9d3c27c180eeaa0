// Browser sessions: a random secret in a cookie stands for a token, so the token is sent once and kept nowhere.
#ifndef DPAR_SERVER_PAGE_SESSIONS_H_
#define DPAR_SERVER_PAGE_SESSIONS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/mutex.h"
#include "core/random/random.h"

namespace dpar {

struct SessionOptions {
  absl::Duration idle = absl::Minutes(15);  // without a request
  absl::Duration life = absl::Hours(8);     // in all
  size_t max_of_tenants = 1'000;            // of all of them
  size_t max_of_owner = 100;                // of one tenant, and of all operators
  size_t max_of_token = 16;
};

// Thread-safe. In memory only. A token's name is judged at every request, so revocation or expiry ends its sessions.
class Sessions {
 public:
  explicit Sessions(SessionOptions options = {}) : options_(options) {}

  // Returns a new secret, 256 random bits in hex; only its SHA-256 is kept. When the token, its tenant or all tenants
  // have too many sessions, the least recently used one ends. Operators are counted apart, so no tenant can end theirs.
  std::string Open(const std::string& token, absl::Time now, RandomSource& random) ABSL_LOCKS_EXCLUDED(mutex_);
  // The token of a live session; counts as a use.
  std::optional<std::string> Find(absl::string_view secret, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Close(absl::string_view secret) ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] size_t size() const ABSL_LOCKS_EXCLUDED(mutex_);
  [[nodiscard]] const SessionOptions& options() const { return options_; }

 private:
  struct Session {
    std::string token;
    absl::Time open_time;
    absl::Time use_time;
  };

  [[nodiscard]] bool IsOver(const Session& session, absl::Time now) const;
  // Ends the least recently used session whose token `counts`, if there are `max` or more.
  void MakeRoom(const std::function<bool(const std::string& token)>& counts, size_t max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionOptions options_;
  mutable Mutex mutex_;
  std::map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);  // by the SHA-256 of the secret
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_SESSIONS_H_
