// Sessions of browsers: a random secret in a cookie that stands for a token for a while, so that the token itself is
// sent once and kept nowhere.
#ifndef DPAR_SERVER_PAGE_SESSIONS_H_
#define DPAR_SERVER_PAGE_SESSIONS_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/random/random.h"

namespace dpar {

struct SessionOptions {
  absl::Duration idle = absl::Minutes(15);  // without a request
  absl::Duration life = absl::Hours(8);     // in all
  size_t max_of_tenants = 1'000;            // of all of them
  size_t max_of_owner = 100;                // of one tenant, and of all operators
  size_t max_of_token = 16;
};

// Thread-safe. In memory only: they end with the process. What a session stands for is a token's name, which is judged
// anew with every request, so a token that is revoked or expires ends its sessions.
class Sessions {
 public:
  explicit Sessions(SessionOptions options = {}) : options_(options) {}

  // A new session; its secret, 256 random bits in hex, of which only the SHA-256 is kept. Where there are too many of
  // the token, of its tenant, or of all tenants, the one that was used longest ago ends. Operators' count for
  // themselves, so that no tenant ends them.
  std::string Open(const std::string& token, absl::Time now, RandomSource& random) ABSL_LOCKS_EXCLUDED(mutex_);
  // The token that a live session stands for; this counts as a use.
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
  // Ends the one used longest ago of those whose token `counts`, unless there are fewer than `max`.
  void MakeRoom(const std::function<bool(const std::string& token)>& counts, size_t max)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionOptions options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Session> sessions_ ABSL_GUARDED_BY(mutex_);  // by the SHA-256 of the secret
};

}  // namespace dpar

#endif  // DPAR_SERVER_PAGE_SESSIONS_H_
