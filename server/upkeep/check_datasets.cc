#include "server/upkeep/check_datasets.h"

#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/error.h"
#include "core/graph/sealed_graph.h"
#include "core/status_macros.h"
#include "server/store/datasets.h"
#include "server/store/read_from.h"

namespace dpar {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPageSize = 100;

struct Counts {
  int64_t good = 0;
  int64_t bad = 0;
  int64_t strangers = 0;
};

absl::StatusOr<bool> IsKnown(Database& database, const std::string& name) {
  const absl::Status found =
      database.Read([&](Transaction& transaction) { return GetDataset(transaction, name).status(); });
  if (!found.ok() && !absl::IsNotFound(found)) {
    return found;
  }
  return found.ok();
}

absl::Status CheckFile(const std::string& path, const PublicSizes& sizes) {
  DPAR_ASSIGN_OR_RETURN(const SealedGraph graph, SealedGraph::Open(path));
  if (graph.sizes() != sizes) {
    return MakeError(absl::StatusCode::kDataLoss, v1::STORE_CORRUPT,
                     "the file holds a graph of other sizes than the store says; restore it from a backup",
                     {{"resource", path}});
  }
  return graph.Check();
}

// Whether it was out of service. Its file was just found whole.
absl::StatusOr<bool> PutBackIntoService(Database& database, const v1::Dataset& dataset) {
  if (dataset.out_of_service_reason().empty()) {
    return false;
  }
  DPAR_RETURN_IF_ERROR(
      database.Write([&](Transaction& transaction) { return SetOutOfService(transaction, dataset.name(), ""); }));
  return true;
}

absl::Status ForEachDataset(Database& database, const std::function<absl::Status(const v1::Dataset&)>& visit) {
  std::string tenant_token;
  do {
    DPAR_ASSIGN_OR_RETURN(const TenantPage tenants, ReadFrom(database, [&](Transaction& transaction) {
                            return ListTenants(transaction, kPageSize, tenant_token);
                          }));
    for (const v1::Tenant& tenant : tenants.tenants) {
      std::string token;
      do {
        DPAR_ASSIGN_OR_RETURN(const DatasetPage page, ReadFrom(database, [&](Transaction& transaction) {
                                return ListDatasets(transaction, tenant.name(), kPageSize, token);
                              }));
        for (const v1::Dataset& dataset : page.datasets) {
          DPAR_RETURN_IF_ERROR(visit(dataset));
        }
        token = page.next_page_token;
      } while (!token.empty());
    }
    tenant_token = tenants.next_page_token;
  } while (!tenant_token.empty());
  return absl::OkStatus();
}

// Visits every file below a directory; skips what the server removes meanwhile.
absl::Status ForEachFile(const fs::path& directory, const std::function<absl::Status(const fs::path&)>& visit) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    std::error_code gone;
    const fs::file_type type = entry->symlink_status(gone).type();
    if (type == fs::file_type::directory) {
      DPAR_RETURN_IF_ERROR(ForEachFile(entry->path(), visit));
    } else if (type != fs::file_type::not_found) {
      DPAR_RETURN_IF_ERROR(visit(entry->path()));
    }
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return absl::UnavailableError(absl::StrCat("cannot list ", directory.string(), ": ", error.message()));
  }
  return absl::OkStatus();
}

// Maps datasets/{tenant}/{id}/graph.sealed to its name; empty for any other path.
std::string DatasetOf(const DataDirectory& directory, const fs::path& file) {
  const std::vector<fs::path> parts(file.begin(), file.end());
  if (parts.size() != 4) {
    return "";
  }
  std::string name = absl::StrCat("tenants/", parts[1].string(), "/datasets/", parts[2].string());
  return fs::path(directory.DatasetFile(name)).filename() == parts[3] ? name : "";
}

}  // namespace

absl::StatusOr<int64_t> CheckDatasets(Database& database, const DataDirectory& directory, std::ostream& out) {
  Counts counts;
  DPAR_RETURN_IF_ERROR(ForEachDataset(database, [&](const v1::Dataset& dataset) -> absl::Status {
    const PublicSizes sizes = {dataset.node_count(), dataset.feature_count(), dataset.class_count()};
    const absl::Status status = CheckFile(directory.DatasetFile(dataset.name()), sizes);
    if (status.ok()) {
      ++counts.good;
      DPAR_ASSIGN_OR_RETURN(const bool back, PutBackIntoService(database, dataset));
      out << dataset.name() << ": ok, " << sizes.node_count << " nodes, " << sizes.feature_count << " features, "
          << sizes.class_count << " classes" << (back ? "; back in service" : "") << "\n"
          << std::flush;
      return absl::OkStatus();
    }
    // The store forgets a dataset before its file goes.
    DPAR_ASSIGN_OR_RETURN(const bool known, IsKnown(database, dataset.name()));
    counts.bad += known ? 1 : 0;
    out << dataset.name() << ": " << (known ? std::string(status.message()) : "deleted meanwhile")
        << (known && !dataset.out_of_service_reason().empty() ? "; out of service" : "") << "\n"
        << std::flush;
    return absl::OkStatus();
  }));
  const fs::path root = directory.root();
  DPAR_RETURN_IF_ERROR(ForEachFile(root / "datasets", [&](const fs::path& path) -> absl::Status {
    const fs::path file = path.lexically_relative(root);
    const std::string name = DatasetOf(directory, file);
    if (!name.empty()) {
      DPAR_ASSIGN_OR_RETURN(const bool known, IsKnown(database, name));
      if (known) {
        return absl::OkStatus();
      }
    }
    ++counts.strangers;
    out << file.string() << ": belongs to no dataset of the store\n" << std::flush;
    return absl::OkStatus();
  }));
  out << "datasets: " << counts.good << " ok, " << counts.bad
      << " damaged or missing; files of no dataset: " << counts.strangers << "\n"
      << std::flush;
  return counts.bad;
}

}  // namespace dpar
