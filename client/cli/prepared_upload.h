// The file that goes to the server, and what is declared about it. Ids and class names are not in it: where the owner's
// file has them, or was a table, it is a temporary copy without them.
#ifndef DPAR_CLIENT_CLI_PREPARED_UPLOAD_H_
#define DPAR_CLIENT_CLI_PREPARED_UPLOAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "client/cli/tables.h"
#include "core/graph/graph.h"

namespace dpar {

class PreparedUpload {
 public:
  static absl::StatusOr<PreparedUpload> OfTables(Session& session, const TableArguments& arguments, bool is_public);
  // Notes features that do not suit the default transform. A schema in the file is declared.
  static absl::StatusOr<PreparedUpload> OfFile(Session& session, const std::string& path,
                                               std::optional<int64_t> classes);

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const PublicSizes& sizes() const { return sizes_; }
  [[nodiscard]] const std::string& schema() const { return schema_; }
  // With a schema: the most feature entries that so many rows can have, whatever they hold.
  [[nodiscard]] std::optional<int64_t> most_entries() const { return most_entries_; }

 private:
  // A directory that only this user can read, removed at the end.
  class Scratch {
   public:
    static absl::StatusOr<std::unique_ptr<Scratch>> Make();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

   private:
    explicit Scratch(std::string path) : path_(std::move(path)) {}
    std::string path_;
  };

  absl::Status WriteCopy(Session& session, const GraphView& graph);

  std::string path_;
  PublicSizes sizes_;
  std::string schema_;
  std::optional<int64_t> most_entries_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace dpar

#endif  // DPAR_CLIENT_CLI_PREPARED_UPLOAD_H_
