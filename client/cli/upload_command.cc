#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "client/cli/commands.h"
#include "client/cli/digest_keys.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/interrupt.h"
#include "client/cli/prepared_upload.h"
#include "client/cli/progress.h"
#include "client/cli/tables.h"
#include "client/sdk/names.h"
#include "client/sdk/upload.h"
#include "core/error.h"
#include "core/graph/graph_file.h"
#include "core/graph/size_bounds.h"
#include "core/privacy/budget.h"
#include "core/status_macros.h"
#include "core/validate.h"

namespace dpar {
namespace {

constexpr int64_t kChunkBytes = 1 << 20;

struct UploadArguments {
  std::string path;       // npz; or
  TableArguments tables;  // tables
  std::string name;
  std::string population;
  std::optional<int64_t> classes;
  std::optional<double> cap_epsilon;
  std::optional<double> cap_delta;
  std::optional<int64_t> max_degree;
  std::optional<int64_t> edge_bound;
  std::optional<int64_t> entry_bound;
  bool is_public = false;
};

v1::OpenUploadRequest OpenRequest(const UploadArguments& arguments, const std::string& tenant,
                                  const PreparedUpload& prepared, RandomSource& random) {
  const PublicSizes& sizes = prepared.sizes();
  v1::OpenUploadRequest open;
  open.set_parent(tenant);
  open.set_request_id(NewRequestId(random));
  open.set_dataset_id(arguments.name);
  open.set_node_count(sizes.node_count);
  open.set_feature_count(sizes.feature_count);
  open.set_class_count(sizes.class_count);
  open.set_is_public(arguments.is_public);
  open.set_population(arguments.population);
  if (arguments.cap_epsilon.has_value()) {
    open.set_cap_epsilon(*arguments.cap_epsilon);
  }
  if (arguments.cap_delta.has_value()) {
    open.set_cap_delta(*arguments.cap_delta);
  }
  if (arguments.max_degree.has_value()) {
    open.set_max_degree(*arguments.max_degree);
  }
  open.set_schema(prepared.schema());
  if (arguments.edge_bound.has_value()) {
    open.set_edge_bound(*arguments.edge_bound);
  }
  if (arguments.entry_bound.has_value()) {
    open.set_entry_bound(*arguments.entry_bound);
  }
  open.set_format(v1::OpenUploadRequest::NPZ);
  return open;
}

absl::Status CheckBound(const std::string& flag, int64_t bound, int64_t most) {
  return bound >= 1 && bound <= most
             ? absl::OkStatus()
             : InvalidField(flag, absl::StrCat("--", flag, " must be from 1 to ", most, ", got ", bound));
}

// Finds a graph above its bounds before any of it is sent. The server checks as well.
absl::Status CheckBounds(const UploadArguments& arguments, const PreparedUpload& prepared, const v1::Limits& limits) {
  const PublicSizes& sizes = prepared.sizes();
  const SizeBounds most = {limits.max_edges(), limits.max_feature_entries()};
  SizeBounds bounds = DefaultSizeBounds(sizes, most);
  bounds.edges = arguments.edge_bound.value_or(bounds.edges);
  bounds.feature_entries = arguments.entry_bound.value_or(bounds.feature_entries);
  DPAR_RETURN_IF_ERROR(CheckBound("edge-bound", bounds.edges, most.edges));
  DPAR_RETURN_IF_ERROR(CheckBound("entry-bound", bounds.feature_entries, most.feature_entries));
  const absl::StatusOr<SizeBounds> stored = ReadStoredCounts(prepared.path(), GraphLimits());
  DPAR_RETURN_IF_ERROR(AsLocal(stored.status()));
  if (stored->edges <= bounds.edges && stored->feature_entries <= bounds.feature_entries) {
    return absl::OkStatus();
  }
  // What is stored may be in both directions, repeated or 0, so only the graph itself tells.
  const absl::StatusOr<ImportedGraph> imported = ReadGraphFile(prepared.path(), GraphLimits(), sizes);
  return AsLocal(imported.ok() ? CheckSizeBounds(imported->graph, bounds) : imported.status());
}

// A check as a line of progress. Waiting for another file has no measure.
ProgressState CheckProgressOf(const v1::UploadCheck& check) {
  constexpr int64_t kSteps = 1000;
  ProgressState state;
  state.stage = absl::StrCat("checking: ", check.stage());
  if (check.stage() == "waiting") {
    state.note = "the server is checking another file";
    return state;
  }
  state.total = kSteps;
  state.completed = static_cast<int64_t>(kSteps * std::clamp(check.fraction(), 0.0, 1.0));
  return state;
}

// Rate and ETA are over the whole upload.
class UploadMeter {
 public:
  explicit UploadMeter(Session& session) : line_(session.err(), session.terminal()) {}

  void Update(int64_t sent, int64_t total) {
    // The last byte is reported when it is sent and again when it is committed.
    if (sent == total && sealing_) {
      return;
    }
    const absl::Time now = absl::Now();
    if (!started_.has_value()) {
      started_ = now;
      first_ = sent;
    }
    ProgressState state;
    state.completed = sent;
    state.total = total;
    state.stage = "uploading";
    state.amount = absl::StrCat(FormatBytes(sent), " of ", FormatBytes(total));
    const double seconds = absl::ToDoubleSeconds(now - *started_);
    if (seconds > 0 && sent > first_) {
      const double rate = static_cast<double>(sent - first_) / seconds;
      state.rate = absl::StrCat(FormatBytes(static_cast<int64_t>(rate)), "/s");
      state.eta = absl::Seconds(static_cast<double>(total - sent) / rate);
    }
    line_.Update(state);
    sealing_ = sent == total;
    if (sealing_) {
      ProgressState checking;
      checking.stage = "checking and sealing";
      line_.Update(checking);
    }
  }

  void Check(const v1::UploadCheck& check) {
    ProgressState state = CheckProgressOf(check);
    if (state.stage != checking_.stage) {
      CompleteStage();
    }
    checking_ = std::move(state);
    line_.Update(checking_);
  }

  void Finish(bool sealed) {
    if (sealed) {
      CompleteStage();
    }
    line_.Finish();
  }

 private:
  // The last part of a finished stage may not have been reported.
  void CompleteStage() {
    if (checking_.total > 0) {
      checking_.completed = checking_.total;
      line_.Update(checking_);
    }
  }

  ProgressLine line_;
  ProgressState checking_;
  std::optional<absl::Time> started_;
  int64_t first_ = 0;
  bool sealing_ = false;
};

std::string CapOrigin(const UploadArguments& arguments, const v1::FinishUploadResponse& response) {
  if (response.budget_shared()) {
    return "that of the population, whose budget goes on";
  }
  return arguments.cap_epsilon.has_value() || arguments.cap_delta.has_value() ? "as declared" : "the server's default";
}

void PrintUploaded(Session& session, const v1::FinishUploadResponse& response, const std::optional<v1::Budget>& budget,
                   const std::string& cap_origin, const std::string& key_file) {
  const v1::Dataset& dataset = response.dataset();
  const v1::ImportReport& report = response.report();
  session.out() << "dataset     " << dataset.name() << "\n"
                << "sizes       " << FormatCount(dataset.node_count()) << " nodes, "
                << FormatCount(dataset.feature_count()) << " features, " << dataset.class_count()
                << " classes (public)\n"
                << "bounds      at most " << FormatCount(dataset.edge_bound()) << " edges and "
                << FormatCount(dataset.entry_bound()) << " feature entries (public)\n";
  if (dataset.has_max_degree()) {
    session.out() << "promise     at most " << FormatCount(dataset.max_degree()) << " neighbours a node (public)\n";
  }
  if (dataset.is_public()) {
    session.out() << "cap         none: the data is declared public, and nothing is guaranteed about it\n";
  } else if (budget.has_value()) {
    session.out() << "population  " << budget->name() << "\n"
                  << "cap         epsilon " << FormatNumber(budget->cap_epsilon()) << " at delta "
                  << FormatNumber(budget->cap_delta()) << " (" << cap_origin << ")\n";
  }
  session.out() << "import      " << FormatCount(report.edge_count()) << " edges kept; "
                << FormatCount(report.edges_symmetrised()) << " symmetrised, "
                << FormatCount(report.duplicates_merged()) << " duplicates merged,\n            "
                << FormatCount(report.self_loops_dropped()) << " self loops and "
                << FormatCount(report.zero_features_dropped()) << " zero features dropped; "
                << FormatCount(report.unlabelled_nodes()) << " nodes unlabelled\n"
                << "digest      " << dataset.content_digest() << "\n"
                << "digest key  " << response.digest_key() << "\n"
                << "            Keep the key: it is shown this once, and proves which graph a\n"
                << "            certificate is about.\n";
  if (!key_file.empty()) {
    session.out() << "            It is also kept on this machine, for dpar predict.\n";
  }
  session.out() << "next        dpar train " << IdOf(dataset.name()) << " --epsilon 1\n";
}

// The upload stands even if the key cannot be kept.
std::string KeepDigestKey(Session& session, const v1::FinishUploadResponse& response) {
  const auto file = SaveDigestKey(session.variables(), response.dataset().content_digest(), response.digest_key());
  if (!file.ok()) {
    session.err() << "note: the digest key could not be kept on this machine: " << file.status().message() << "\n";
  }
  return file.value_or("");
}

// The tenant's populations that a dataset may join.
absl::StatusOr<std::vector<v1::Budget>> OpenPopulations(Connection& connection, const std::string& tenant) {
  DPAR_ASSIGN_OR_RETURN(Connection::Budgets all, connection.ListBudgets(tenant, /*sums_only=*/true));
  std::erase_if(all.budgets, [](const v1::Budget& budget) { return !budget.merged_into().empty(); });
  return std::move(all.budgets);
}

void NoteOthers(Session& session, const std::string& others) {
  session.err() << "note: without --population these count as people of whom nothing was uploaded before, with a\n"
                << "budget of their own. If they are people of " << others
                << ",\nname it: budgets belong to people, not to uploads.\n";
}

// Ids of the populations that there are; nothing when they could not be listed.
using Others = std::optional<std::vector<std::string>>;

// Asks whose data it is, where someone can answer and nothing was said. Returns what there was to choose from, if
// nothing was chosen.
absl::StatusOr<Others> SettlePopulation(Session& session, const std::string& tenant, UploadArguments& arguments) {
  const Others none = std::vector<std::string>();
  if (!arguments.population.empty()) {
    DPAR_ASSIGN_OR_RETURN(arguments.population, session.Resolve("populations", arguments.population));
    return none;
  }
  if (arguments.is_public) {
    return none;
  }
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  const absl::StatusOr<std::vector<v1::Budget>> listed = OpenPopulations(*connection, tenant);
  Others ids = none;
  if (!listed.ok()) {
    session.err() << "note: populations of earlier uploads could not be listed (" << listed.status().message() << ")\n";
    ids.reset();
  } else {
    for (const v1::Budget& population : *listed) {
      ids->push_back(IdOf(population.name()));
    }
    if (ids->empty()) {
      return none;
    }
  }
  if (!session.CanAsk()) {
    NoteOthers(session, ids.has_value() ? absl::StrCat("one of ", absl::StrJoin(*ids, ", ")) : "an earlier population");
    return ids;
  }
  session.err() << "Budgets belong to people. Is this a graph of the same people as one before?\n";
  for (const v1::Budget& population : listed.value_or(std::vector<v1::Budget>())) {
    session.err() << "  " << IdOf(population.name()) << ", "
                  << FormatPercent(population.left_units(), population.cap_units()) << " of its cap left\n";
  }
  while (true) {
    const std::string answer = session.AskText("Type its name, or press Enter for other people:");
    if (answer.empty()) {
      return ids;
    }
    // The server checks a name that cannot be checked here.
    if (!ids.has_value() || std::find(ids->begin(), ids->end(), answer) != ids->end()) {
      DPAR_ASSIGN_OR_RETURN(arguments.population, session.Resolve("populations", answer));
      return none;
    }
    session.err() << "there is no population " << answer << "\n";
  }
}

// Says what another version of `slots` slots does to the budget that it joins, for good, and asks where someone can
// answer. False: not wanted.
absl::StatusOr<bool> AcceptsSmallerCap(Session& session, const std::string& population, int64_t slots) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  const absl::StatusOr<v1::Budget> budget = connection->GetBudget(population);
  if (absl::IsNotFound(budget.status())) {
    return budget.status();
  }
  if (!budget.ok()) {
    session.err() << "note: the budget of " << population << " cannot be read (" << budget.status().message()
                  << ").\nIf this version's " << FormatCount(slots)
                  << " slots are too many for the delta of its cap, the cap shrinks for good.\n";
    return true;
  }
  DPAR_ASSIGN_OR_RETURN(const double delta, DefaultDelta(budget->node_total() + slots));
  if (delta >= budget->cap_delta()) {
    return true;
  }
  DPAR_ASSIGN_OR_RETURN(const int64_t units, CapUnits(budget->cap_epsilon(), delta, budget->order()));
  session.err() << "note: with this version, " << population << " has up to "
                << FormatCount(budget->node_total() + slots) << " people. For good,\nthe delta of its cap goes from "
                << FormatNumber(budget->cap_delta()) << " to " << FormatNumber(delta) << ", and the cap from "
                << FormatCount(budget->cap_units()) << " to " << FormatCount(units) << " units ("
                << FormatCount(budget->posted_units() + budget->reserved_units()) << " used).\n";
  return !session.CanAsk() || session.Ask("Upload it?", /*yes_by_default=*/false);
}

absl::StatusOr<int> Send(Session& session, UploadArguments arguments, const PreparedUpload& prepared) {
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  DPAR_ASSIGN_OR_RETURN(const std::string tenant, session.TenantOrOwn(""));
  DPAR_ASSIGN_OR_RETURN(const v1::ServerInfo info, connection->GetServerInfo());
  if (!arguments.entry_bound.has_value() && prepared.most_entries().has_value()) {
    arguments.entry_bound = std::min(*prepared.most_entries(), info.limits().max_feature_entries());
  }
  DPAR_RETURN_IF_ERROR(CheckBounds(arguments, prepared, info.limits()));
  DPAR_ASSIGN_OR_RETURN(const Others others, SettlePopulation(session, tenant, arguments));
  if (!arguments.population.empty()) {
    DPAR_ASSIGN_OR_RETURN(const bool accepted,
                          AcceptsSmallerCap(session, arguments.population, prepared.sizes().node_count));
    if (!accepted) {
      session.err() << "nothing was uploaded\n";
      return kFailed;
    }
  }
  if (!arguments.is_public && arguments.population.empty()) {
    const double cap = arguments.cap_epsilon.value_or(info.limits().default_cap_epsilon());
    session.err() << "cap: epsilon " << FormatNumber(cap) << " for all jobs together"
                  << (arguments.cap_epsilon.has_value() ? "" : " (the default; --cap-epsilon lowers it)") << "\n";
  }
  UploadOptions options;
  options.path = prepared.path();
  options.open = OpenRequest(arguments, tenant, prepared, session.random());
  options.finish_request_id = NewRequestId(session.random());
  options.chunk_bytes = std::clamp<int64_t>(info.limits().max_chunk_bytes(), 1, kChunkBytes);
  UploadMeter meter(session);
  const auto response = UploadFile(
      *connection, options, [&meter](int64_t sent, int64_t total) { meter.Update(sent, total); },
      [&meter](const v1::UploadCheck& check) { meter.Check(check); });
  meter.Finish(response.ok());
  DPAR_RETURN_IF_ERROR(response.status());
  const std::string key_file = KeepDigestKey(session, *response);
  std::optional<v1::Budget> budget;
  if (!arguments.is_public) {
    // The dataset is sealed and its key is shown only once, so no later failure may hide it.
    if (auto asked = connection->GetBudget(response->dataset().population()); asked.ok()) {
      budget = *std::move(asked);
    } else {
      session.err() << "note: the dataset is sealed, but its cap could not be asked for (" << asked.status().message()
                    << ");\ndpar population show " << IdOf(response->dataset().population()) << " shows it.\n";
    }
  }
  if (!session.json()) {
    PrintUploaded(session, *response, budget, CapOrigin(arguments, *response), key_file);
    return kDone;
  }
  Json json = {{"dataset", ResourceJson(response->dataset())}, {"report", ResourceJson(response->report())}};
  json["digest_key"] = response->digest_key();
  if (!key_file.empty()) {
    json["digest_key_file"] = key_file;
  }
  json["budget_shared"] = response->budget_shared();
  if (!response->budget_shared() && (!others.has_value() || !others->empty())) {
    json["other_populations"] = others.has_value() ? Json(*others) : Json(nullptr);
  }
  if (budget.has_value()) {
    json["budget"] = ResourceJson(*budget);
  }
  session.PrintJson(json);
  session.err() << "keep digest_key: it is shown this once, and proves which graph a certificate is about\n";
  return kDone;
}

absl::Status CheckArguments(const UploadArguments& arguments) {
  if (!arguments.population.empty() &&
      (arguments.is_public || arguments.cap_epsilon.has_value() || arguments.cap_delta.has_value())) {
    return InvalidField(
        "population", "--population goes without --public, --cap-epsilon and --cap-delta: the population has its cap");
  }
  if (!arguments.name.empty()) {
    DPAR_RETURN_IF_ERROR(ValidateId("name", arguments.name));
  }
  if (!arguments.tables.given()) {
    return arguments.path.empty()
               ? InvalidField("file", "give a graph file, or tables with --schema, --nodes and --edges")
               : CheckGraphInput("file", arguments.path);
  }
  if (!arguments.path.empty() || arguments.classes.has_value()) {
    return InvalidField("file", "give a graph file or tables, not both; the schema states the classes of tables");
  }
  return CheckTableArguments(arguments.tables);
}

absl::StatusOr<int> RunUpload(Session& session, const UploadArguments& arguments) {
  DPAR_RETURN_IF_ERROR(CheckArguments(arguments));
  // Before the copy to upload is written: an interrupted upload removes it.
  const Interrupt interrupt([&session] { session.calls().Cancel(); });
  DPAR_ASSIGN_OR_RETURN(const PreparedUpload prepared,
                        arguments.tables.given()
                            ? PreparedUpload::OfTables(session, arguments.tables, arguments.is_public)
                            : PreparedUpload::OfFile(session, arguments.path, arguments.classes));
  return Send(session, arguments, prepared);
}

}  // namespace

CLI::App* AddUpload(CLI::App& parent, const std::string& name, const std::string& words, Command& chosen) {
  const auto arguments = std::make_shared<UploadArguments>();
  CLI::App* command = parent.add_subcommand(name, "Send a graph to the server and seal it, with a privacy budget");
  command->add_option("FILE", arguments->path, "Graph file (npz); or tables:");
  AddTableFlags(*command, arguments->tables);
  AddAcceptFlag(*command, arguments->tables);
  command->add_option("--name", arguments->name, "Id of the dataset (made by the server when left out)");
  command->add_option(
      "--population", arguments->population,
      "Id or full name of the population whose people\nthese are, if an earlier upload was about them:\n"
      "its budget goes on. Left out, these are other\npeople with a budget of their own");
  command->add_option(
      "--classes", arguments->classes,
      "Number of classes, unless the file states it as\nnum_classes. Public; never counted from labels");
  command->add_option("--cap-epsilon", arguments->cap_epsilon,
                      "Most that all jobs together may spend (default:\nthe server's, which is also the most)");
  command->add_option("--cap-delta", arguments->cap_delta,
                      "Delta of the cap (default: 1/(10 N), rounded\ndown to one digit)");
  command->add_option(
      "--max-degree", arguments->max_degree,
      "Promise that no node has more neighbours, which\nmethods gap and sage need. Public; the file is\n"
      "refused if it does not hold");
  command->add_option("--edge-bound", arguments->edge_bound,
                      "Most edges of the graph (default: 64 a node).\nPublic, so not the file's own count; a graph\n"
                      "with more is refused");
  command->add_option("--entry-bound", arguments->entry_bound,
                      "Most feature entries other than 0 (default: all\nup to 1,024 features, above them 256 a node).\n"
                      "Public, as --edge-bound");
  command->add_flag("--public", arguments->is_public,
                    "Declare the data public, for good: nothing is\nguaranteed about it");
  command->footer(Examples("  dpar " + words + " graph.npz --name " + (words == "upload" ? "demo" : "people") +
                           " --cap-epsilon 4\n  dpar " + words + " march.npz --population demo\n  dpar " + words +
                           " --schema people.schema.yaml --nodes customers.csv \\\n      --edges transfers.csv"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunUpload(s, *arguments); }; });
  return command;
}

}  // namespace dpar
