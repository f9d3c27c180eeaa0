// The witness directory: marks, and the keys under which tenants' contents are recognised.
//
//   ids                                which store it belongs to (pairing.h)
//   {tenant}/{content digest}.mark     the mark of one budget
//   {tenant}/content.key               the tenant's content key, hex; a tenant that is made again gets it back
//   {tenant}/lock                      held by whoever writes a mark of the tenant's
//
// It lies outside of the data directory, so that nothing that restores the one rolls back the other. Servers of a fleet
// share it as they share the data directory. It is as private as that: content keys and digests together let whoever
// has them ask whether a tenant has a given graph.
#ifndef DPAR_SERVER_WITNESS_MARK_DIRECTORY_H_
#define DPAR_SERVER_WITNESS_MARK_DIRECTORY_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/directory_lock.h"
#include "server/witness/mark.h"

namespace dpar {

// Paths, and files that are replaced as a whole. Errors name files, for operators; UNAVAILABLE unless said otherwise.
class MarkDirectory {
 public:
  explicit MarkDirectory(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] const std::string& root() const { return root_; }

  // Ids, oldest first; none when it belongs to nobody yet. DATA_LOSS when there is something that is no list of ids.
  absl::StatusOr<std::vector<std::string>> ReadIds() const;
  // Replaces them, as a whole and durably.
  absl::Status WriteIds(const std::vector<std::string>& ids) const;
  // From now on, no mark is read or written while this id is not among them: a directory that is gone while a server
  // runs, as when its disk is unmounted, is neither taken for an empty one nor begun anew. Before other threads use
  // this.
  void Expect(std::string id) { expected_ = std::move(id); }

  [[nodiscard]] std::string File(const Content& content) const;

  // Makes the directory, for its owner only, and writes something there.
  absl::Status Make() const;
  // Whether something can be written there, by doing it.
  absl::Status TryWriting() const;

  // Waits for the tenant's lock, for some seconds.
  absl::StatusOr<DirectoryLock> Lock(const std::string& tenant) const;

  // Nothing when there is none. DATA_LOSS when there is something that is no mark, or the mark of another content;
  // UNIMPLEMENTED when another version wrote it.
  absl::StatusOr<std::optional<Mark>> Read(const Content& content) const;
  // Replaces it: temporary name, sync, rename, sync of the directory. The caller holds the lock.
  absl::Status Write(const Mark& mark) const;
  // Makes what another process may have renamed, and not synced before it died, durable.
  absl::Status Sync(const Content& content) const;

  // Every content that there is a mark of, readable or not, in the order of their names. Empty when there is no
  // directory.
  absl::StatusOr<std::vector<Content>> List() const;

  // Whether the tenant's key is kept.
  absl::StatusOr<bool> HasContentKey(const std::string& tenant) const;
  // The tenant's key (raw bytes) as it was first kept; `fresh` is kept when there was none. The lock is taken here.
  absl::StatusOr<std::string> KeepContentKey(const std::string& tenant, const std::string& fresh) const;

 private:
  [[nodiscard]] std::string TenantDirectory(const std::string& tenant) const;
  [[nodiscard]] std::string ContentKeyFile(const std::string& tenant) const;
  absl::Status CheckExpected() const;

  const std::string root_;
  std::string expected_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_MARK_DIRECTORY_H_
