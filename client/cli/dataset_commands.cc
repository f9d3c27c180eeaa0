#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/digest_keys.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/sdk/names.h"
#include "core/error.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

std::string KindOf(const v1::Dataset& dataset) {
  return absl::StrCat(dataset.is_public() ? "public" : "private",
                      dataset.out_of_service_reason().empty() ? "" : ", out of service");
}

absl::StatusOr<int> RunDatasets(Session& session, const std::string& tenant_option) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, session.TenantOrOwn(tenant_option));
  DPAR_ASSIGN_OR_RETURN(const auto datasets, connection->ListDatasets(tenant));
  if (session.json()) {
    session.PrintJson({{"tenant", tenant}, {"datasets", ListJson(datasets)}});
    return kDone;
  }
  if (datasets.empty()) {
    session.out() << "no datasets yet\nnext: dpar upload FILE\n";
    return kDone;
  }
  Table table({"DATASET", "POPULATION", "NODES", "FEATURES", "CLASSES", "KIND", "AGE"}, {0, 1});
  for (const v1::Dataset& dataset : datasets) {
    table.Add({IdOf(dataset.name()), IdOf(dataset.population()), FormatCount(dataset.node_count()),
               FormatCount(dataset.feature_count()), FormatCount(dataset.class_count()), KindOf(dataset),
               FormatAge(absl::Now() - FromProto(dataset.create_time()))});
  }
  session.out() << table.Render(session.TableWidth());
  return kDone;
}

absl::StatusOr<int> RunShow(Session& session, const std::string& text) {
  session.error_context().dataset = text;
  DPAR_ASSIGN_OR_RETURN(const std::string name, session.Resolve("datasets", text));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const v1::Dataset dataset, connection->GetDataset(name));
  std::optional<v1::Budget> budget;
  if (!dataset.is_public()) {
    DPAR_ASSIGN_OR_RETURN(budget, connection->GetBudget(dataset.population()));
  }
  const bool has_key = FindDigestKey(session.variables(), dataset.content_digest()).has_value();
  if (session.json()) {
    Json json = {{"dataset", ResourceJson(dataset)}, {"digest_key_kept", has_key}};
    if (budget.has_value()) {
      json["budget"] = ResourceJson(*budget);
    }
    session.PrintJson(json);
    return kDone;
  }
  session.out() << "dataset     " << dataset.name() << "\n"
                << "sealed      " << FormatTime(dataset.create_time()) << "\n"
                << "sizes       " << FormatCount(dataset.node_count()) << " nodes, "
                << FormatCount(dataset.feature_count()) << " features, " << FormatCount(dataset.class_count())
                << " classes (public)\n"
                << "bounds      at most " << FormatCount(dataset.edge_bound()) << " edges and "
                << FormatCount(dataset.entry_bound()) << " feature entries (public)\n"
                << "promise     "
                << (dataset.has_max_degree()
                        ? absl::StrCat("at most ", FormatCount(dataset.max_degree()), " neighbours a node (public)")
                        : "none about degrees: methods gap and sage are refused")
                << "\n"
                << "digest      " << dataset.content_digest() << "\n"
                << "digest key  " << (has_key ? "kept on this machine" : "not on this machine") << "\n";
  if (!dataset.out_of_service_reason().empty()) {
    session.out() << "OUT OF SERVICE  " << dataset.out_of_service_reason() << "\n";
  }
  if (budget.has_value()) {
    session.out() << "population  " << dataset.population() << "\n"
                  << "cap         epsilon " << FormatNumber(budget->cap_epsilon()) << " at delta "
                  << FormatNumber(budget->cap_delta()) << "; "
                  << FormatPercent(budget->left_units(), budget->cap_units()) << " left\n"
                  << "next        dpar population show " << IdOf(name) << ", dpar train " << IdOf(name)
                  << " --epsilon 1\n";
  } else {
    session.out() << "cap         none: the data is public\n";
  }
  return kDone;
}

absl::StatusOr<int> RunDelete(Session& session, const std::string& text, bool yes) {
  session.error_context().dataset = text;
  if (!yes && !session.CanAsk()) {
    return InvalidField("yes", "deleting cannot be undone, and nobody is there to be asked: add --yes");
  }
  DPAR_ASSIGN_OR_RETURN(const std::string name, session.Resolve("datasets", text));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  if (!yes &&
      !session.Ask(absl::StrCat("Delete ", name, " for good? Its population with the budget, and its models, stay."),
                   /*yes_by_default=*/false)) {
    session.err() << "nothing was deleted\n";
    return kFailed;
  }
  v1::DeleteDatasetRequest request;
  request.set_name(name);
  request.set_request_id(NewRequestId(session.random()));
  DPAR_RETURN_IF_ERROR(connection->DeleteDataset(request));
  if (session.json()) {
    session.PrintJson({{"deleted", name}});
  } else {
    session.out() << "deleted " << name << "; its id stays taken, and its population with the budget stays\n";
  }
  return kDone;
}

void AddList(CLI::App& parent, const std::string& name, const std::string& words, const char* group, Command& chosen) {
  const auto tenant = std::make_shared<std::string>();
  CLI::App* command = parent.add_subcommand(name, "List the datasets");
  command->group(group);
  command->add_option("--tenant", *tenant, "Tenant, for operators (default: the token's own)");
  command->footer(Examples("  dpar " + words));
  command->callback([tenant, &chosen] { chosen = [tenant](Session& s) { return RunDatasets(s, *tenant); }; });
}

void AddShow(CLI::App& group, Command& chosen) {
  const auto dataset = std::make_shared<std::string>();
  CLI::App* command = group.add_subcommand("show", "Show one dataset: sizes, digest, population, budget");
  command->add_option("DATASET", *dataset, "Id or full name of the dataset")->required();
  command->footer(Examples("  dpar dataset show demo"));
  command->callback([dataset, &chosen] { chosen = [dataset](Session& s) { return RunShow(s, *dataset); }; });
}

void AddDelete(CLI::App& group, Command& chosen) {
  const auto dataset = std::make_shared<std::string>();
  const auto yes = std::make_shared<bool>(false);
  CLI::App* command = group.add_subcommand("delete", "Remove a dataset from the server; its budget stays");
  command->add_option("DATASET", *dataset, "Id or full name of the dataset")->required();
  command->add_flag("--yes", *yes, "Do not ask");
  command->footer(Examples("  dpar dataset delete people --yes"));
  command->callback(
      [dataset, yes, &chosen] { chosen = [dataset, yes](Session& s) { return RunDelete(s, *dataset, *yes); }; });
}

}  // namespace

void AddDatasetCommands(CLI::App& app, Command& chosen) {
  CLI::App* group = AddCommandGroup(app, "dataset", "upload, list, show or delete datasets", kDataGroup);
  AddUpload(*group, "upload", "dataset upload", chosen);
  AddList(*group, "list", "dataset list", "Subcommands", chosen);
  AddShow(*group, chosen);
  AddDelete(*group, chosen);
}

void AddDatasetShortForms(CLI::App& app, Command& chosen) {
  AddUpload(app, "upload", "upload", chosen)->group(kShortGroup);
  AddList(app, "datasets", "datasets", kShortGroup, chosen);
}

}  // namespace dpar
