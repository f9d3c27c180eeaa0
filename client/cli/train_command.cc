#include <unistd.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/cli/commands.h"
#include "client/cli/errors.h"
#include "client/cli/format.h"
#include "client/cli/interrupt.h"
#include "client/cli/labels.h"
#include "client/cli/plan_text.h"
#include "client/cli/training_flags.h"
#include "client/cli/typed_flags.h"
#include "client/cli/watching.h"
#include "client/sdk/names.h"
#include "core/error.h"
#include "core/plan/method.h"
#include "core/status_macros.h"

namespace dpar {
namespace {

constexpr const char* kPrivacyFlags = "Privacy and evaluation";
constexpr const char* kDefaultMethod = "auto";
constexpr double kDefaultEvaluationShare = 0.1;

struct TrainArguments {
  std::string dataset;
  Flags flags;
  bool non_private = false;
  bool no_watch = false;
  bool dry_run = false;
  bool yes = false;
  int32_t priority = 0;
};

// The server checks ranges; it knows the dataset's public sizes.
absl::Status CheckIsNumber(absl::string_view flag, double value) {
  return std::isnan(value) ? InvalidField(flag, absl::StrCat(flag, " must be a number, got ", value))
                           : absl::OkStatus();
}

// The command that does what the dry run showed.
std::string SameCommand(const TrainArguments& arguments) {
  std::string command = absl::StrCat("dpar train ", arguments.dataset);
  for (const auto& [name, typed] : arguments.flags) {
    if (!typed.empty() && (name != "method" || typed != kDefaultMethod)) {
      absl::StrAppend(&command, " --", name, " ", typed);
    }
  }
  return absl::StrCat(command, arguments.non_private ? " --non-private" : "");
}

double ToSeconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + 1e-9 * static_cast<double>(duration.nanos());
}

Json DryRunJson(const v1::Job& job, const std::optional<v1::Budget>& budget) {
  Json json = {{"dry_run", true},
               {"dataset", job.spec().dataset()},
               {"plan", ResourceJson(job.plan())},
               {"stages", ListJson(job.stages())},
               {"memory_bytes", job.memory_bytes()},
               {"estimated_seconds", ToSeconds(job.estimated_time())}};
  if (budget.has_value()) {
    json["budget"] = ResourceJson(*budget);
  }
  return json;
}

void PrintLine(Session& session, absl::string_view heading, absl::string_view text) {
  session.out() << absl::StrFormat("%-18s%s\n", heading, text);
}

void PrintPrice(Session& session, const v1::Job& job, const v1::Budget& budget) {
  const v1::Plan& plan = job.plan();
  const int64_t cap = budget.cap_units();
  PrintLine(
      session, "price",
      absl::StrCat(FormatCount(plan.price_units()), " units, ", FormatPercent(plan.price_units(), cap), " of the cap"));
  for (const v1::StagePrice& cost : job.stages()) {
    PrintLine(session, absl::StrCat("  ", cost.stage()),
              absl::StrCat(FormatPercent(cost.units(), plan.price_units()), " of it; alone it would be epsilon ",
                           FormatNumberUp(cost.epsilon())));
  }
  PrintLine(session, "left afterwards",
            plan.left_units() >= 0 ? absl::StrCat(FormatCount(plan.left_units()), " units, ",
                                                  FormatPercent(plan.left_units(), cap), " of the cap")
                                   : "nothing: it is admitted as the only job, by its own epsilon");
}

// Nothing for public data.
absl::StatusOr<std::optional<v1::Budget>> BudgetOf(Connection& connection, const v1::Job& job) {
  DPAR_ASSIGN_OR_RETURN(const v1::Dataset dataset, connection.GetDataset(job.spec().dataset()));
  if (dataset.is_public()) {
    return std::optional<v1::Budget>();
  }
  DPAR_ASSIGN_OR_RETURN(v1::Budget budget, connection.GetBudget(dataset.population()));
  return std::optional(std::move(budget));
}

absl::StatusOr<int> PrintDryRun(Session& session, Connection& connection, const v1::Job& job,
                                const TrainArguments& arguments) {
  DPAR_ASSIGN_OR_RETURN(const std::optional<v1::Budget> budget, BudgetOf(connection, job));
  if (session.json()) {
    session.PrintJson(DryRunJson(job, budget));
    return kDone;
  }
  PrintLine(session, "dataset", job.spec().dataset());
  for (const auto& [heading, text] : PlanLines(job.plan())) {
    PrintLine(session, heading, text);
  }
  if (budget.has_value()) {
    PrintPrice(session, job, *budget);
  } else {
    PrintLine(session, "price", "none: the data is public");
  }
  PrintLine(session, "takes",
            absl::StrCat("about ", FormatClock(absl::Seconds(ToSeconds(job.estimated_time()))), " and up to ",
                         FormatBytes(job.memory_bytes()), " of memory, once it starts"));
  session.out() << "nothing was queued or spent\n";
  PrintLine(session, "next", SameCommand(arguments));
  return kDone;
}

void PrintQueued(Session& session, const v1::Job& job, bool watched) {
  if (session.json()) {
    // With --no-watch it is the only object; otherwise others follow.
    Json json = {{"job", ResourceJson(job)}, {"state", StateLabel(job.state())}};
    json["terminal"] = !watched;
    session.PrintJson(json);
    return;
  }
  session.out() << "job      " << job.name() << "\n"
                << "state    " << StateLabel(job.state()) << "\n"
                << "plan     " << PlanText(job.plan()) << "\n"
                << "next     dpar watch " << IdOf(job.name()) << "\n";
}

absl::Status ReadEvaluation(const Flags& flags, v1::TrainingSpec& spec) {
  if (!IsGiven(flags, "evaluate")) {
    return IsGiven(flags, "evaluation-share")
               ? InvalidField("evaluation-share", "--evaluation-share belongs to --evaluate, which is not given")
               : absl::OkStatus();
  }
  DPAR_ASSIGN_OR_RETURN(const double held_out, ReadNumber(flags, "evaluate", CheckIsNumber));
  spec.mutable_evaluation()->set_held_out_share(held_out);
  spec.mutable_evaluation()->set_budget_share(kDefaultEvaluationShare);
  if (IsGiven(flags, "evaluation-share")) {
    DPAR_ASSIGN_OR_RETURN(const double share, ReadNumber(flags, "evaluation-share", CheckIsNumber));
    spec.mutable_evaluation()->set_budget_share(share);
  }
  return absl::OkStatus();
}

absl::Status ReadPrivacy(const TrainArguments& arguments, v1::TrainingSpec& spec) {
  const Flags& flags = arguments.flags;
  spec.set_non_private(arguments.non_private);
  if (IsGiven(flags, "epsilon") == arguments.non_private) {
    return InvalidField("epsilon", arguments.non_private
                                       ? "--epsilon and --non-private exclude each other: without noise there is none"
                                       : "--epsilon is needed (or --non-private, for data that was declared public)");
  }
  if (IsGiven(flags, "epsilon")) {
    DPAR_ASSIGN_OR_RETURN(const double epsilon, ReadNumber(flags, "epsilon", CheckIsNumber));
    spec.set_epsilon(epsilon);
  }
  if (IsGiven(flags, "delta")) {
    DPAR_ASSIGN_OR_RETURN(const double delta, ReadNumber(flags, "delta", CheckIsNumber));
    spec.set_delta(delta);
  }
  if (IsGiven(flags, "preset")) {
    DPAR_ASSIGN_OR_RETURN(const auto* preset,
                          ParseEnumerator("preset", *v1::Preset_descriptor(), Typed(flags, "preset")));
    spec.set_preset(static_cast<v1::Preset>(preset->number()));
  }
  if (IsGiven(flags, "accountant")) {
    DPAR_ASSIGN_OR_RETURN(const auto* accountant,
                          ParseEnumerator("accountant", *v1::Accountant_descriptor(), Typed(flags, "accountant")));
    spec.set_accountant(static_cast<v1::Accountant>(accountant->number()));
  }
  if (IsGiven(flags, "seed")) {
    DPAR_ASSIGN_OR_RETURN(const int64_t seed, ReadInteger(flags, "seed", 0, std::numeric_limits<int64_t>::max()));
    spec.set_seed(static_cast<uint64_t>(seed));
  }
  return ReadEvaluation(flags, spec);
}

// All but the dataset's name.
absl::StatusOr<v1::TrainingSpec> ReadSpec(const TrainArguments& arguments) {
  v1::TrainingSpec spec;
  DPAR_ASSIGN_OR_RETURN(const v1::Method method, ParseMethod(Typed(arguments.flags, "method")));
  spec.set_method(method);
  DPAR_RETURN_IF_ERROR(ReadPrivacy(arguments, spec));
  DPAR_ASSIGN_OR_RETURN(const v1::TrainingOptions options, ReadTrainingFlags(arguments.flags));
  *spec.mutable_options() = options;
  return spec;
}

absl::StatusOr<v1::CreateJobRequest> MakeRequest(Session& session, const TrainArguments& arguments) {
  v1::CreateJobRequest request;
  DPAR_ASSIGN_OR_RETURN(*request.mutable_spec(), ReadSpec(arguments));
  DPAR_ASSIGN_OR_RETURN(const std::string dataset, session.Resolve("datasets", arguments.dataset));
  request.set_parent(TenantOf(dataset));
  request.mutable_spec()->set_dataset(dataset);
  request.set_validate_only(arguments.dry_run);
  request.set_priority(arguments.priority);
  request.set_request_id(NewRequestId(session.random()));
  return request;
}

int Declined(Session& session) {
  session.err() << "nothing was queued or spent\n";
  return kFailed;
}

// Shows the price and what it leaves, and asks. True unasked for public data, with --yes, and where nobody can answer.
absl::StatusOr<bool> AgreeOnPrice(Session& session, Connection& connection, const TrainArguments& arguments,
                                  v1::CreateJobRequest request) {
  if (arguments.yes || !session.CanAsk()) {
    return true;
  }
  request.set_validate_only(true);
  DPAR_ASSIGN_OR_RETURN(const v1::Job job, connection.CreateJob(request));
  DPAR_ASSIGN_OR_RETURN(const std::optional<v1::Budget> budget, BudgetOf(connection, job));
  if (!budget.has_value()) {
    return true;
  }
  const v1::Plan& plan = job.plan();
  const std::string left =
      plan.left_units() >= 0 ? FormatPercent(plan.left_units(), budget->cap_units()) : std::string("nothing");
  return session.Ask(absl::StrCat("epsilon ", FormatNumberUp(plan.epsilon()), " costs ",
                                  FormatPercent(plan.price_units(), budget->cap_units()), " of the cap, ", left,
                                  " would be left. Train?"),
                     /*yes_by_default=*/true);
}

absl::StatusOr<int> RunTrain(Session& session, const TrainArguments& arguments) {
  session.error_context().dataset = arguments.dataset;
  if (arguments.no_watch || arguments.dry_run) {
    DPAR_ASSIGN_OR_RETURN(const v1::CreateJobRequest request, MakeRequest(session, arguments));
    DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
    if (!arguments.dry_run) {
      DPAR_ASSIGN_OR_RETURN(const bool agreed, AgreeOnPrice(session, *connection, arguments, request));
      if (!agreed) {
        return Declined(session);
      }
    }
    DPAR_ASSIGN_OR_RETURN(const v1::Job job, connection->CreateJob(request));
    if (arguments.dry_run) {
      return PrintDryRun(session, *connection, job, arguments);
    }
    PrintQueued(session, job, /*watched=*/false);
    return kDone;
  }
  session.StreamJson();
  Cancellation cancellation;
  std::atomic<bool> asking = false;
  const Interrupt interrupt([&] {
    if (asking) {
      // The question blocks on a line. Nothing is queued yet, so nothing needs cleaning up.
      session.err() << "\ninterrupted; nothing was queued" << std::endl;
      ::_exit(kInterrupted);
    }
    cancellation.Cancel();
  });
  DPAR_ASSIGN_OR_RETURN(const v1::CreateJobRequest request, MakeRequest(session, arguments));
  DPAR_ASSIGN_OR_RETURN(Connection* const connection, session.Connect());
  asking = true;
  DPAR_ASSIGN_OR_RETURN(const bool agreed, AgreeOnPrice(session, *connection, arguments, request));
  asking = false;
  if (!agreed) {
    return Declined(session);
  }
  if (cancellation.cancelled()) {
    session.err() << "interrupted; nothing was queued\n";
    return kInterrupted;
  }
  DPAR_ASSIGN_OR_RETURN(const v1::Job job, connection->CreateJob(request));
  session.err() << IdOf(job.name()) << ": " << PlanText(job.plan()) << std::endl;
  if (session.json()) {
    PrintQueued(session, job, /*watched=*/true);
  }
  return FollowJob(session, job.name(), cancellation);
}

void AddPrivacyFlags(CLI::App& command, TrainArguments& arguments) {
  Flags& flags = arguments.flags;
  AddFlag(command, flags, "preset", "paper",
          "The DPAR paper's own options. --epsilon is\nthen the paper's claim; what is charged is\nwhat its noise "
          "really costs, far more")
      ->group(kPrivacyFlags);
  AddFlag(command, flags, "accountant", "sound|as-published",
          "as-published also shows the paper's claim,\nwhich is no bound")
      ->group(kPrivacyFlags);
  command
      .add_flag("--non-private", arguments.non_private,
                "No noise and no --epsilon; only for data\nthat was declared public")
      ->group(kPrivacyFlags);
  AddFlag(command, flags, "seed", "INT",
          "Fix the random stream, so that the same job\ngives the same model; only for data that was\ndeclared public")
      ->group(kPrivacyFlags);
  AddFlag(command, flags, "evaluate", "SHARE",
          "Hold out this share of the nodes and release\na noisy accuracy on them; it is charged")
      ->group(kPrivacyFlags);
  AddFlag(command, flags, "evaluation-share", "SHARE",
          absl::StrCat("Share of epsilon that pays (default: ", kDefaultEvaluationShare, ")"))
      ->group(kPrivacyFlags);
}

}  // namespace

void AddTrainCommand(CLI::App& app, Command& chosen) {
  const auto arguments = std::make_shared<TrainArguments>();
  Flags& flags = arguments->flags;
  CLI::App* command = app.add_subcommand("train", "Train a private model, and watch it");
  command->group(kTrainingGroup);
  command->add_option("DATASET", arguments->dataset, "Id or full name of the dataset")->required();
  AddFlag(*command, flags, "epsilon", "FLOAT", "Privacy loss bound of this job, 0.001 to 100");
  AddFlag(*command, flags, "delta", "FLOAT", "Probability bound of this job\n(default: the delta of the cap)");
  AddFlagWithDefault(*command, flags, "method", "METHOD", kDefaultMethod,
                     absl::StrReplaceAll(MethodNames(), {{"dpar-gm, ", "dpar-gm,\n"}}));
  command->add_option("--priority", arguments->priority,
                      "-100 to 100; of your queued jobs, those of\nhigher priority start first (default: 0)");
  command->add_flag("--no-watch", arguments->no_watch, "Queue the job and return");
  command->add_flag("--yes", arguments->yes, "Do not show the price and ask first");
  command->add_flag("--dry-run", arguments->dry_run, "Show the plan and its price; spend nothing");
  AddPrivacyFlags(*command, *arguments);
  AddTrainingFlags(*command, flags);
  command->footer(
      Examples("  dpar train demo --epsilon 1 --dry-run\n  dpar train demo --epsilon 1\n"
               "  dpar train demo --epsilon 2 --method dpar-em0 --evaluate 0.2"));
  command->callback([arguments, &chosen] { chosen = [arguments](Session& s) { return RunTrain(s, *arguments); }; });
}

}  // namespace dpar
