// The witness directory: marks, and the keys under which tenants' contents are recognised.
//
//   store.ids                               which store it belongs to (pairing.h)
//   {tenant}/{population}.mark              the mark of one population
//   {tenant}/{content digest}.population    the population that the content first had
//   {tenant}/{content digest}.public        empty: the content was declared public once
//   {tenant}/content.key                    the tenant's content key, hex; a tenant that is made again gets it back
//   {tenant}/lock                           held while a mark of the tenant is written
//
// It lies outside of the data directory, so that restoring that does not roll it back; a fleet shares both. It is as
// private: content keys and digests reveal whether a tenant has a given graph.
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

struct Content {
  std::string tenant;  // tenants/{t}
  std::string digest;  // of the canonical content under the tenant's key, lower-case hex
};

// Populations are named in full, tenants/{t}/populations/{p}. Files are replaced as a whole. Errors name files, for
// operators, and are UNAVAILABLE unless said otherwise.
class MarkDirectory {
 public:
  explicit MarkDirectory(std::string root) : root_(std::move(root)) {}

  [[nodiscard]] const std::string& root() const { return root_; }

  // Oldest first; none for an unowned directory. DATA_LOSS for an invalid list.
  absl::StatusOr<std::vector<std::string>> ReadIds() const;
  absl::Status WriteIds(const std::vector<std::string>& ids) const;
  // From now on, reads and writes marks only while this id is in the directory: one that disappears, as by an unmount,
  // is neither taken for empty nor begun anew. Call before other threads use this.
  void Expect(std::string id) { expected_ = std::move(id); }

  [[nodiscard]] std::string File(const std::string& population) const;

  // Makes the directory for its owner only, and tries to write.
  absl::Status Make() const;
  absl::Status TryWriting() const;

  // Waits some seconds for the tenant's lock.
  absl::StatusOr<DirectoryLock> Lock(const std::string& tenant) const;

  // Nothing without a file. DATA_LOSS for an invalid mark or another population's; UNIMPLEMENTED for another version's.
  absl::StatusOr<std::optional<Mark>> Read(const std::string& population) const;
  // Temporary name, sync, rename, sync of the directory. The caller holds the lock.
  absl::Status Write(const Mark& mark) const;
  // Makes durable what another process may have renamed but not synced before it died.
  absl::Status Sync(const std::string& population) const;

  // Remembers, durably, the population that a content first had; keeps what is remembered already.
  absl::Status KeepPopulation(const Content& content, const std::string& population) const;
  // DATA_LOSS for a file without a population of the tenant.
  absl::StatusOr<std::optional<std::string>> PopulationOf(const Content& content) const;

  // Remembers, durably, that a content was declared public.
  absl::Status KeepPublic(const Content& content) const;
  absl::StatusOr<bool> WasPublic(const Content& content) const;

  // Every population with a mark, readable or not, by name. Empty without a directory.
  absl::StatusOr<std::vector<std::string>> List() const;

  absl::StatusOr<bool> HasContentKey(const std::string& tenant) const;
  // The tenant's key (raw bytes) as first kept; keeps `fresh` when there is none. Takes the lock.
  absl::StatusOr<std::string> KeepContentKey(const std::string& tenant, const std::string& fresh) const;

 private:
  [[nodiscard]] std::string TenantDirectory(const std::string& tenant) const;
  [[nodiscard]] std::string ContentKeyFile(const std::string& tenant) const;
  [[nodiscard]] std::string PopulationFile(const Content& content) const;
  [[nodiscard]] std::string PublicFile(const Content& content) const;
  absl::Status CheckExpected() const;

  const std::string root_;
  std::string expected_;
};

}  // namespace dpar

#endif  // DPAR_SERVER_WITNESS_MARK_DIRECTORY_H_
